# Released curves: linear forms of a result's joint law. Asking costs no privacy.

make_curve <- function(result, row, limits, name, means) {
  form <- list(law = result$law, weights = list("0" = row), fixed = NULL)
  scale <- count_means(list(transform = result$transform, means = NA), means)
  curve <- list(
    forms = list(form), constant = 0, limits = limits, name = name, x_name = result$x_name, y_name = result$y_name, scale = scale
  )
  class(curve) <- "dp_curve"
  curve
}

change <- function(curve, ...) {
  fields <- list(...)
  for (name in names(fields)) curve[[name]] <- fields[[name]]
  curve
}

form_orders <- function(form) sort(as.integer(names(form$weights)))

form_features <- function(form, u) {
  blocks <- lapply(form_orders(form), function(order) {
    evaluate_functions(form$law$functions, u, order) / form$law$length^order
  })
  if (!is.null(form$fixed)) blocks <- c(blocks, list(matrix(1, length(u), 1)))
  do.call(cbind, blocks)
}

form_coefficients <- function(form) {
  rows <- lapply(form_orders(form), function(order) drop(form$weights[[as.character(order)]] %*% form$law$mean))
  c(unlist(rows), if (!is.null(form$fixed)) sum(form$fixed * t(form$law$mean)))
}

form_covariance <- function(form) {
  if (is.null(form$law$covariance)) stop("band needs method = \"adaptive\": this result has no covariance.", call. = FALSE)
  size <- ncol(form$law$mean)
  rows <- lapply(form_orders(form), function(order) kronecker(t(form$weights[[as.character(order)]]), diag(size)))
  if (!is.null(form$fixed)) rows <- c(rows, list(t(form$fixed)))
  map <- do.call(rbind, rows)
  map %*% form$law$covariance %*% t(map)
}

form_add <- function(one, other) {
  for (order in names(other$weights)) {
    before <- one$weights[[order]]
    one$weights[[order]] <- if (is.null(before)) other$weights[[order]] else before + other$weights[[order]]
  }
  if (!is.null(other$fixed)) one$fixed <- if (is.null(one$fixed)) other$fixed else one$fixed + other$fixed
  one
}

form_times <- function(form, factor) {
  form$weights <- lapply(form$weights, function(row) factor * row)
  if (!is.null(form$fixed)) form$fixed <- factor * form$fixed
  form
}

form_integral <- function(form, ends) {
  law <- form$law
  fixed <- if (is.null(form$fixed)) numeric(length(law$mean)) else form$fixed * diff(ends) * law$length
  for (order in form_orders(form)) {
    at_ends <- evaluate_functions(law$functions, ends, order - 1L) * law$length^(1 - order)
    fixed <- fixed + as.numeric(outer(at_ends[2, ] - at_ends[1, ], form$weights[[as.character(order)]]))
  }
  list(law = law, weights = list(), fixed = fixed)
}

domain_of <- function(curve) curve$forms[[1]]$law$domain

to_unit <- function(curve, x) {
  domain <- domain_of(curve)
  u <- (x - domain[1]) / diff(domain)
  if (anyNA(u) || any(u < -1e-9 | u > 1 + 1e-9)) {
    stop("x must lie in the domain (", domain[1], ", ", domain[2], ").", call. = FALSE)
  }
  pmin(pmax(u, 0), 1)
}

grid_of <- function(curve, x) if (is.null(x)) seq(domain_of(curve)[1], domain_of(curve)[2], length.out = 201) else read_x(curve, x)

# Where a result counts days from a date, places are shown as dates and may be given as such.
origin_of <- function(curve) curve$forms[[1]]$law$x_origin

read_x <- function(curve, x) {
  if (is.numeric(x) && !inherits(x, "Date")) return(x)
  if (is.null(origin_of(curve))) stop("x must hold numbers.", call. = FALSE)
  as.numeric(as.Date(x)) - as.numeric(as.Date(origin_of(curve)))
}

show_x <- function(curve, x) if (is.null(origin_of(curve))) x else as.Date(origin_of(curve)) + x

write_x <- function(curve, x) format(show_x(curve, x))

features_at <- function(curve, u) do.call(cbind, lapply(curve$forms, form_features, u = u))

raw_at <- function(curve, u) {
  drop(features_at(curve, u) %*% unlist(lapply(curve$forms, form_coefficients))) + curve$constant
}

covariance_of <- function(curve) {
  blocks <- lapply(curve$forms, form_covariance)
  sizes <- vapply(blocks, nrow, 0L)
  whole <- matrix(0, sum(sizes), sum(sizes))
  place <- 0L
  for (block in blocks) {
    here <- place + seq_len(nrow(block))
    whole[here, here] <- block
    place <- place + nrow(block)
  }
  whole
}

sd_at <- function(curve, u) sqrt(pmax(quadratic(features_at(curve, u), covariance_of(curve)), 0))

path_of <- function(curve) path_length(features_at(curve, nodes()), covariance_of(curve))

clip <- function(values, limits) pmin(pmax(values, limits[1]), limits[2])

show_at <- function(curve, values) take_back(curve$scale, clip(values, curve$limits))

standard_error <- function(curve, x) {
  u <- to_unit(curve, read_x(curve, x))
  back_slope(curve$scale, clip(raw_at(curve, u), curve$limits)) * sd_at(curve, u)
}

critical_value <- function(curve, level = 0.95) solve_critical(level, path_of(curve))

band <- function(curve, level = 0.95, x = NULL, simultaneous = TRUE) {
  x <- grid_of(curve, x)
  half <- if (simultaneous) critical_value(curve, level) else pointwise_critical(level)
  make_band(curve, x, half)
}

make_band <- function(curve, x, c) {
  u <- to_unit(curve, x)
  centre <- raw_at(curve, u)
  half <- c * sd_at(curve, u)
  data.frame(x = show_x(curve, x), lower = show_at(curve, centre - half), upper = show_at(curve, centre + half))
}

joint_bands <- function(curves, level = 0.95, x = NULL) {
  c <- solve_critical(level, vapply(curves, path_of, 0))
  lapply(curves, function(curve) make_band(curve, grid_of(curve, x), c))
}

predict.dp_curve <- function(object, x = NULL, level = 0.95, ...) {
  x <- grid_of(object, x)
  table <- data.frame(x = show_x(object, x), estimate = show_at(object, raw_at(object, to_unit(object, x))))
  if (all(vapply(object$forms, function(form) !is.null(form$law$covariance), NA))) {
    table$standard_error <- standard_error(object, x)
    limits <- band(object, level, x)
    table$lower <- limits$lower
    table$upper <- limits$upper
  }
  table
}

has_free_ends <- function(law) {
  slopes <- abs(evaluate_functions(law$functions, c(0, 0.3, 0.5, 0.7, 1), 1L))
  max(slopes) == 0 || min(max(slopes[1, ]), max(slopes[5, ])) > 1e-9 * max(slopes)
}

curve_has_free_ends <- function(curve) all(vapply(curve$forms, function(form) has_free_ends(form$law), NA))

derivative <- function(curve, order = 1L) {
  if (!curve_has_free_ends(curve)) {
    stop("derivative needs a basis with free ends: the cosines of this fit are level at both ends of the domain.", call. = FALSE)
  }
  forms <- lapply(curve$forms, function(form) {
    weights <- form$weights
    names(weights) <- as.integer(names(weights)) + as.integer(order)
    list(law = form$law, weights = weights, fixed = NULL)
  })
  back <- back_of(curve$scale)
  name <- paste(if (back == "log" && order == 1) "relative growth rate of" else "derivative of", curve$name)
  if (!back %in% c("none", "log")) name <- paste0(name, ", of ", back, "(", curve$y_name, ")")
  change(curve, forms = forms, constant = 0, limits = c(-Inf, Inf), name = name, scale = stay_transformed(curve$scale))
}

times_limits <- function(limits, factor) if (factor == 0) c(0, 0) else sort(limits * factor)

integral <- function(curve, low = NULL, high = NULL) {
  refuse_integral(curve$scale)
  ends <- ends_of(curve, low, high)
  sum_up(curve, ends, diff(ends), "integral of")
}

average <- function(curve, low = NULL, high = NULL) {
  sum_up(curve, ends_of(curve, low, high), 1, paste(AVERAGES[[back_of(curve$scale)]], "of"))
}

ends_of <- function(curve, low, high) {
  domain <- domain_of(curve)
  ends <- c(if (is.null(low)) domain[1] else read_x(curve, low), if (is.null(high)) domain[2] else read_x(curve, high))
  if (!(ends[1] < ends[2])) stop("low must be below high.", call. = FALSE)
  ends
}

# The integral, scaled so that it is `size` for a curve that is 1.
sum_up <- function(curve, ends, size, what) {
  forms <- lapply(curve$forms, function(form) form_times(form_integral(form, to_unit(curve, ends)), size / diff(ends)))
  name <- paste(what, curve$name, "over", write_x(curve, ends[1]), "to", write_x(curve, ends[2]))
  as_value(change(curve, forms = forms, constant = curve$constant * size, limits = times_limits(curve$limits, size), name = name))
}

as_value <- function(curve) {
  known <- all(vapply(curve$forms, function(form) !is.null(form$law$covariance), NA))
  error <- if (known) standard_error(curve, domain_of(curve)[1]) else NA_real_
  value <- list(curve = curve, estimate = show_at(curve, raw_at(curve, 0)), standard_error = error)
  class(value) <- "dp_value"
  value
}

value_interval <- function(value, level = 0.95) {
  centre <- raw_at(value$curve, 0)
  show_at(value$curve, centre + c(-1, 1) * pointwise_critical(level) * sd_at(value$curve, 0))
}

value_p <- function(value) {
  refuse_zero(value$curve$scale)
  centre <- abs(raw_at(value$curve, 0))
  sd <- sd_at(value$curve, 0)
  if (sd > 0) erfc(centre / sd / sqrt(2)) else as.numeric(centre == 0)
}

join_forms <- function(ours, theirs, independent) {
  for (form in theirs) {
    if (!identical(ours[[1]]$law$domain, form$law$domain)) stop("The curves must have the same domain.", call. = FALSE)
    same <- which(vapply(ours, function(each) identical(each$law, form$law), NA))
    if (length(same)) {
      ours[[same]] <- form_add(ours[[same]], form)
    } else {
      if (!independent) {
        stop("The curves come from separate fits: if no subject is in both, say minus(a, b, independent = TRUE).", call. = FALSE)
      }
      ours <- c(ours, list(form))
    }
  }
  ours
}

combine <- function(one, other, sign, independent = FALSE) {
  if (inherits(other, "dp_value")) other <- other$curve
  mark <- if (sign > 0) "+" else "-"
  if (is.numeric(other)) {
    refuse_numbers(one$scale)
    return(change(one, constant = one$constant + sign * other, limits = one$limits + sign * other, name = paste(one$name, mark, other)))
  }
  forms <- join_forms(one$forms, lapply(other$forms, form_times, factor = sign), independent)
  limits <- one$limits + times_limits(other$limits, sign)
  scale <- combine_scales(one$scale, other$scale, sign)
  if (back_of(scale) == "log") mark <- if (sign > 0) "*" else "/"
  name <- paste0("(", one$name, ") ", mark, " (", other$name, ")")
  change(one, forms = forms, constant = one$constant + sign * other$constant, limits = limits, name = name, scale = scale)
}

plus <- function(one, other, independent = FALSE) combine(one, other, 1, independent)

minus <- function(one, other, independent = FALSE) combine(one, other, -1, independent)

scale_curve <- function(curve, factor) {
  scale <- count_means(curve$scale, factor * curve$scale$means)
  forms <- lapply(curve$forms, form_times, factor = factor)
  name <- if (factor == 1) curve$name else if (factor == -1) paste0("-(", curve$name, ")") else paste0(factor, " (", curve$name, ")")
  change(curve, forms = forms, constant = factor * curve$constant, limits = times_limits(curve$limits, factor), name = name, scale = scale)
}

Ops.dp_curve <- function(e1, e2) {
  is_number <- function(each) is.numeric(each) || inherits(each, "dp_value")
  bare <- function(each) if (inherits(each, "dp_value")) each$curve else each
  if (missing(e2)) {
    answer <- if (.Generic == "-") scale_curve(bare(e1), -1) else bare(e1)
    return(if (is_number(e1)) as_value(answer) else answer)
  }
  one <- bare(e1)
  other <- bare(e2)
  answer <- switch(.Generic,
    "+" = if (is.numeric(one)) combine(other, one, 1) else combine(one, other, 1),
    "-" = if (is.numeric(one)) combine(scale_curve(other, -1), one, 1) else combine(one, other, -1),
    "*" = if (is.numeric(one)) scale_curve(other, one) else scale_curve(one, other),
    "/" = scale_curve(one, 1 / other),
    stop("Curves can be added, subtracted, and multiplied with numbers.", call. = FALSE)
  )
  if (is_number(e1) && is_number(e2)) as_value(answer) else answer
}

Ops.dp_value <- Ops.dp_curve

print.dp_curve <- function(x, ...) {
  domain <- domain_of(x)
  cat("Released curve: ", x$name, " (", scale_label(x$scale, x$y_name), " over ", x$x_name, " in ", write_x(x, domain[1]), " to ", write_x(x, domain[2]), ")\n", sep = "")
  print(head(predict(x, seq(domain[1], domain[2], length.out = 9)), 9), row.names = FALSE)
  invisible(x)
}

print.dp_value <- function(x, ...) {
  cat(x$curve$name, ": ", format(x$estimate, digits = 4), sep = "")
  if (!is.na(x$standard_error)) {
    sides <- format(value_interval(x), digits = 4)
    cat(" (95% interval ", sides[1], " to ", sides[2], ")", sep = "")
  }
  cat("\n")
  invisible(x)
}
