# Tests over the whole domain, and the place of an extremum.

CELLS <- 400
FOR_SLOPES <- 0.9
SAME <- 1e-12

zero_test <- function(curve, level = 0.95, hypothesis = paste(curve$name, if (is_ratio(curve$scale)) "is 1" else "is zero")) {
  refuse_zero(curve$scale)
  u <- nodes()
  variance <- sd_at(curve, u)^2
  doubtful <- variance > KNOWN * max(variance, 0)
  ratios <- ifelse(doubtful, raw_at(curve, u) / sqrt(ifelse(doubtful, variance, 1)), 0)
  kappa <- path_of(curve)
  statistic <- max(abs(ratios))
  test <- list(
    hypothesis = hypothesis, p_value = exceedance(statistic, kappa), statistic = statistic, level = level,
    intervals = excluded(curve, u, ratios, solve_critical(level, kappa))
  )
  test$rejected <- test$p_value < 1 - level
  class(test) <- "dp_test"
  test
}

constant_test <- function(curve, level = 0.95) {
  zero_test(curve - average(curve), level, paste(curve$name, "is constant"))
}

excluded <- function(curve, u, ratios, c) {
  domain <- domain_of(curve)
  signs <- ifelse(ratios > c, 1, ifelse(ratios < -c, -1, 0))
  runs <- rle(signs)
  ends <- cumsum(runs$lengths)
  starts <- ends - runs$lengths + 1
  found <- data.frame(low = numeric(0), high = numeric(0), sign = numeric(0))
  for (run in which(runs$values != 0)) {
    sign <- runs$values[run]
    left <- if (starts[run] == 1) u[1] else crossing(curve, u[starts[run] - 1], u[starts[run]], c, sign)
    right <- if (ends[run] == length(u)) u[length(u)] else crossing(curve, u[ends[run] + 1], u[ends[run]], c, sign)
    found[nrow(found) + 1, ] <- c(domain[1] + diff(domain) * left, domain[1] + diff(domain) * right, sign)
  }
  found$low <- show_x(curve, found$low)
  found$high <- show_x(curve, found$high)
  found
}

crossing <- function(curve, outside, inside, c, sign) {
  for (halving in 1:60) {
    middle <- (outside + inside) / 2
    if (sign * raw_at(curve, middle) > c * sd_at(curve, middle)) inside <- middle else outside <- middle
  }
  (outside + inside) / 2
}

argmax <- function(curve, level = 0.95) find_extremum(curve, level, 1)

argmin <- function(curve, level = 0.95) find_extremum(curve, level, -1)

find_extremum <- function(curve, level, sign) {
  u <- (0:CELLS) / CELLS
  values <- sign * raw_at(curve, u)
  uses_slopes <- curve_has_free_ends(curve)
  alpha <- 1 - level
  near <- not_exceeded(curve, u, values, if (uses_slopes) alpha * (1 - FOR_SLOPES) else alpha)
  last <- length(u)
  cells <- near[-1] | near[-last]
  if (uses_slopes) cells <- cells & level_cells(curve, u, alpha * FOR_SLOPES, sign)
  best <- which.max(values)
  cells[unique(pmin(pmax(c(best - 1, best), 1), CELLS))] <- TRUE
  domain <- domain_of(curve)
  runs <- rle(cells)
  ends <- cumsum(runs$lengths)[runs$values]
  starts <- ends - runs$lengths[runs$values]
  x <- domain[1] + diff(domain) * u[best]
  found <- list(
    kind = if (sign > 0) "maximum" else "minimum", x = show_x(curve, x), value = show_at(curve, raw_at(curve, u[best])), level = level,
    intervals = data.frame(
      low = show_x(curve, domain[1] + diff(domain) * starts / CELLS), high = show_x(curve, domain[1] + diff(domain) * ends / CELLS)
    )
  )
  class(found) <- "dp_extremum"
  found
}

not_exceeded <- function(curve, u, values, alpha) {
  features <- features_at(curve, u)
  between <- features %*% covariance_of(curve) %*% t(features)
  own <- diag(between)
  count <- length(u)
  spread <- outer(own, own, "+") - 2 * between
  doubtful <- spread > SAME * max(own, 0)
  sd <- sqrt(ifelse(doubtful, spread, 1))
  ratios <- ifelse(doubtful, outer(values, values, function(here, there) there - here) / sd, 0)
  neighbours <- between[cbind(seq_len(count - 1), 2:count)]
  joint <- matrix(neighbours, count, count - 1, byrow = TRUE) - between[, -count] - between[, -1] + own
  place <- matrix(seq_len(count), count, count - 1)
  rival <- matrix(seq_len(count - 1), count, count - 1, byrow = TRUE)
  pairs <- doubtful[, -1] & doubtful[, -count] & place != rival & place != rival + 1
  cosines <- pmin(pmax(joint / (sd[, -1] * sd[, -count]), -1), 1)
  lengths <- rowSums(ifelse(pairs, acos(cosines), 0))
  sides <- c(1, rep(2, count - 2), 1)
  apply(ratios, 1, max) <= solve_one_sided(alpha, sides, lengths)
}

level_cells <- function(curve, u, alpha, sign) {
  slope <- derivative(curve)
  steep <- sign * raw_at(slope, u)
  variance <- sd_at(slope, u)^2
  sd <- sqrt(ifelse(variance > KNOWN * max(variance, 0), variance, 0))
  two_sided <- -qnorm(alpha / 2)
  one_sided <- -qnorm(min(alpha, 0.5))
  kept <- abs(steep) <= two_sided * sd
  last <- length(u)
  kept[1] <- steep[1] <= one_sided * sd[1]
  kept[last] <- steep[last] >= -one_sided * sd[last]
  kept[-1] | kept[-last] | steep[-1] * steep[-last] <= 0
}

print.dp_test <- function(x, ...) {
  cat(x$hypothesis, ": p = ", format(x$p_value, digits = 3), ", ", if (x$rejected) "rejected" else "not rejected", sep = "")
  if (nrow(x$intervals)) {
    cat(" on", paste0(format(x$intervals$low, digits = 4), " to ", format(x$intervals$high, digits = 4)), sep = " ")
  }
  cat("\n")
  invisible(x)
}

print.dp_extremum <- function(x, ...) {
  sets <- paste0(format(x$intervals$low, digits = 4), " to ", format(x$intervals$high, digits = 4), collapse = ", ")
  cat(x$kind, " ", format(x$value, digits = 4), " at ", format(x$x, digits = 4), " (", 100 * x$level, "% confidence set: ", sets, ")\n", sep = "")
  invisible(x)
}
