dp_read <- function(path, y = NULL) {
  if (!file.exists(path)) stop("There is no file ", path, ".", call. = FALSE)
  text <- paste(readLines(path, warn = FALSE, encoding = "UTF-8"), collapse = "\n")
  inside <- if (startsWith(trimws(substr(text, 1, 100)), "{")) character() else regmatches(text, regexec("<script type=\"application/json\" id=\"dpfda-result\">(.*?)</script>", text))[[1]]
  document <- tryCatch(
    jsonlite::parse_json(if (length(inside)) inside[2] else text, simplifyVector = FALSE), # fromJSON would open a path or an address
    error = function(problem) stop(basename(path), " is not a result of dpfda.", call. = FALSE)
  )
  dp_result(document, basename(path), y)
}

dp_result <- function(document, file = "The document", y = NULL) {
  if (is.list(document) && identical(document$schema, "dpfda-outcomes/1")) document <- choose_outcome(document$outcomes, file, y)
  schema <- if (is.list(document)) document$schema
  if (identical(schema, "dpfda-result/1")) {
    stop(file, " was written by version 0.1 of dpfda, whose results cannot answer questions; fit again.", call. = FALSE)
  }
  if (!identical(schema, "dpfda-result/2")) stop(file, " is not a result of dpfda (dpfda-result/2).", call. = FALSE)
  model <- document$model
  law <- new.env(parent = emptyenv())
  law$domain <- as.numeric(unlist(model$domain))
  law$length <- diff(law$domain)
  law$x_origin <- document$study$x_origin
  law$functions <- read_functions(model$functions)
  law$mean <- do.call(rbind, lapply(model$coefficients, as.numeric))
  law$covariance <- read_covariance(model$covariance, length(law$mean))
  transform <- if (is.null(model$transform)) "none" else model$transform
  if (!transform %in% names(MEANS)) stop(file, " has a transform that is not known here.", call. = FALSE)
  limits <- vapply(seq_len(2), function(side) {
    if (is.null(model$limits[[side]])) c(-Inf, Inf)[side] else apply_transform(transform, as.numeric(model$limits[[side]]))
  }, numeric(1))
  covariates <- lapply(model$covariates, function(each) {
    list(name = each$name, bounds = as.numeric(unlist(each$bounds)), levels = as.character(unlist(each$levels)), reference = each$reference)
  })
  names(covariates) <- vapply(covariates, function(each) each$name, "")
  structure(
    list(
      document = document, law = law, limits = limits, columns = unlist(model$columns), intercept = model$intercept,
      covariates = covariates, terms = model$terms, transform = transform, x_name = document$study$x, y_name = document$study$y
    ),
    class = "dp_result"
  )
}

choose_outcome <- function(outcomes, file, y) {
  if (!is.character(y) || length(y) != 1 || !y %in% names(outcomes)) {
    stop(file, " holds the outcomes ", paste(names(outcomes), collapse = ", "), ": name one of them with y.", call. = FALSE)
  }
  outcomes[[y]]
}

read_functions <- function(fields) {
  if (fields$kind == "waves") {
    for (name in c("multiples", "quarters", "scales")) fields[[name]] <- as.numeric(unlist(fields[[name]]))
  } else {
    fields$breaks <- as.numeric(unlist(fields$breaks))
    fields$pieces <- lapply(fields$pieces, function(piece) do.call(rbind, lapply(piece, as.numeric)))
  }
  fields
}

read_covariance <- function(entries, size) {
  if (is.null(entries)) return(NULL)
  entries <- as.numeric(unlist(entries))
  if (length(entries) != size * (size + 1) / 2) stop("The covariance has another size than the coefficients.", call. = FALSE)
  covariance <- matrix(0, size, size)
  covariance[upper.tri(covariance, diag = TRUE)] <- entries # columns of the upper triangle are rows of the lower one
  covariance[lower.tri(covariance)] <- t(covariance)[lower.tri(covariance)]
  covariance
}

# The design row of a profile.
design_row <- function(result, profile) {
  if (result$intercept && !is.null(profile$intercept)) {
    if (profile$intercept != 1) stop("intercept must be 1 in a profile; leave it out.", call. = FALSE)
    profile$intercept <- NULL
  }
  strange <- setdiff(names(profile), names(result$covariates))
  if (length(strange)) {
    stop("'", strange[1], "' is not a covariate of this fit; choose from ", paste(names(result$covariates), collapse = ", "), ".", call. = FALSE)
  }
  values <- lapply(result$covariates, profile_value, profile = profile)
  entries <- unlist(lapply(result$terms, function(term) {
    parts <- lapply(term, function(factor) covariate_entries(result$covariates[[factor$name]], values[[factor$name]], factor$spline))
    Reduce(function(before, following) as.numeric(outer(following, before)), parts, 1) # the first factor varies slowest
  }))
  unname(if (result$intercept) c(1, entries) else entries)
}

profile_value <- function(covariate, profile) {
  value <- if (is.null(profile[[covariate$name]])) covariate$reference else profile[[covariate$name]]
  if (length(covariate$levels)) {
    if (!as.character(value) %in% covariate$levels) {
      stop(covariate$name, " must be one of ", paste(covariate$levels, collapse = ", "), ".", call. = FALSE)
    }
    return(as.character(value))
  }
  room <- 1e-9 * diff(covariate$bounds)
  if (!is.numeric(value) && !is.logical(value) || is.na(value) ||
      value < covariate$bounds[1] - room || value > covariate$bounds[2] + room) {
    stop(covariate$name, " must lie within its public bounds ", covariate$bounds[1], " to ", covariate$bounds[2], ".", call. = FALSE)
  }
  as.numeric(value)
}

covariate_entries <- function(covariate, value, spline = NULL) {
  if (length(covariate$levels)) return(as.numeric(covariate$levels[-1] == value))
  if (is.null(spline)) value else spline_entries(as.numeric(unlist(spline$knots)), spline$degree, covariate$bounds, value)
}

# B-splines on public knots, all but the first: de Boor's recurrence.
spline_entries <- function(knots, degree, bounds, value) {
  knots <- c(rep(bounds[1], degree + 1), knots, rep(bounds[2], degree + 1))
  at <- min(max(value, bounds[1]), bounds[2])
  last <- length(knots) - degree - 1
  piece <- degree + 1
  while (piece < last && at >= knots[piece + 1]) piece <- piece + 1
  found <- as.numeric(seq_len(length(knots) - 1) == piece)
  for (order in seq_len(degree)) {
    k <- seq_len(length(found) - 1)
    rising <- knots[k + order] - knots[k]
    falling <- knots[k + order + 1] - knots[k + 1]
    left <- ifelse(rising > 0, (at - knots[k]) / rising * found[k], 0)
    right <- ifelse(falling > 0, (knots[k + order + 1] - at) / falling * found[k + 1], 0)
    found <- left + right
  }
  found[-1]
}

name_profile <- function(result, profile) {
  mean <- MEANS[[result$transform]]
  if (!length(result$covariates)) return(mean)
  values <- vapply(result$covariates, function(each) {
    value <- profile_value(each, profile)
    paste0(each$name, "=", if (is.numeric(value)) format(value, digits = 6) else value)
  }, "")
  paste(mean, "at", paste(values, collapse = ", "))
}

curve_at <- function(result, ...) {
  profile <- list(...)
  make_curve(result, design_row(result, profile), result$limits, name_profile(result, profile), 1)
}

# The column of an effect: as named, or of a category with two levels, which may be named alone, its second.
name_effect <- function(result, name) {
  for (covariate in result$covariates) {
    if (covariate$name == name && length(covariate$levels) == 2 && !name %in% result$columns) {
      return(paste0(name, ": ", covariate$levels[2]))
    }
  }
  name
}

effect <- function(result, name, level = NULL, per = 1) {
  column <- if (is.null(level)) name_effect(result, name) else paste0(name, ": ", level)
  place <- match(column, result$columns)
  if (is.na(place)) {
    stop("'", column, "' is not a coefficient of this fit; choose from ", paste(result$columns, collapse = ", "), ".", call. = FALSE)
  }
  row <- numeric(length(result$columns))
  row[place] <- per
  limits <- if (column == "mean") result$limits else c(-Inf, Inf)
  make_curve(result, row, limits, if (per == 1) column else paste(per, "more of", column), if (column %in% c("mean", "intercept")) per else 0)
}

contrast <- function(result, one, other) do.call(curve_at, c(list(result), one)) - do.call(curve_at, c(list(result), other))

list_curves <- function(result) {
  effects <- setdiff(result$columns, c("mean", "intercept"))
  c(if (result$intercept) list(curve_at(result)), lapply(effects, function(name) effect(result, name)))
}

print.dp_result <- function(x, ...) {
  cat("Result of dpfda:", x$document$study$model, "of", x$y_name, "over", x$x_name, "\n")
  cat(x$document$estimand, "\n")
  for (sentence in x$document$warnings) cat("Warning:", sentence, "\n")
  privacy <- x$document$privacy
  if (isTRUE(privacy$private)) {
    cat("epsilon = ", privacy$epsilon, ", delta = ", privacy$delta, " for each subject\n", sep = "")
  } else {
    cat("NOT PRIVATE:", privacy$mechanism, "\n")
  }
  invisible(x)
}

summary.dp_result <- function(object, level = 0.95, ...) {
  curves <- list_curves(object)
  means <- lapply(curves, average)
  table <- data.frame(
    curve = vapply(curves, function(curve) curve$name, ""),
    average = vapply(means, function(value) value$estimate, 0)
  )
  if (!is.null(object$law$covariance)) {
    sides <- vapply(means, function(value) value_interval(value, level), numeric(2))
    table$lower <- sides[1, ]
    table$upper <- sides[2, ]
    table$p_zero <- vapply(curves, function(curve) if (is_taken_back(curve$scale)) NA_real_ else zero_test(curve, level)$p_value, 0)
    table$p_constant <- vapply(curves, function(curve) constant_test(curve, level)$p_value, 0)
  }
  table
}

predict.dp_result <- function(object, x = NULL, ..., level = 0.95) predict(curve_at(object, ...), x = x, level = level)

dp_fit <- function(source, ..., json = tempfile(fileext = ".json"), dpfda = "dpfda") {
  options <- list(...)
  names(options) <- gsub("_", "-", names(options))
  words <- unlist(lapply(names(options), function(name) {
    value <- options[[name]]
    if (isTRUE(value)) paste0("--", name) else if (isFALSE(value)) NULL else c(paste0("--", name), paste(value, collapse = ","))
  }))
  said <- suppressWarnings(
    system2(dpfda, shQuote(c("fit", source, words, "--json", json)), stdout = TRUE, stderr = TRUE)
  )
  status <- attr(said, "status")
  if (!is.null(status) && status != 0) stop(paste(said, collapse = "\n"), call. = FALSE)
  dp_read(json)
}
