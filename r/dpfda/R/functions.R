# Functions as a result file holds them: waves, and pieces of Chebyshev polynomials. u runs from 0 to 1.

evaluate_functions <- function(fields, u, order = 0L) {
  if (fields$kind == "waves") evaluate_waves(fields, u, order) else evaluate_pieces(fields, u, order)
}

evaluate_waves <- function(fields, u, order) {
  multiples <- fields$multiples
  theta <- outer(fields$angle * u, multiples)
  sine <- fields$quarters == 1
  by_column <- function(values) matrix(rep(values, each = length(u)), length(u))
  if (order == -1L) {
    speeds <- by_column(ifelse(multiples > 0, fields$angle * multiples, 1))
    rising <- ifelse(by_column(sine), (1 - cos(theta)) / speeds, sin(theta) / speeds)
    level <- matrix(u, length(u), length(multiples))
    return(ifelse(by_column(multiples > 0), rising, level) * by_column(fields$scales))
  }
  turns <- (fields$quarters - order) %% 4
  values <- ifelse(by_column(turns %% 2 == 1), sin(theta), cos(theta))
  values * by_column(ifelse(turns >= 2, -1, 1) * fields$scales * (fields$angle * multiples)^order)
}

evaluate_pieces <- function(fields, u, order) {
  breaks <- fields$breaks
  place <- pmin(pmax(findInterval(u, breaks), 1L), length(breaks) - 1L)
  values <- matrix(0, length(u), fields$size)
  before <- numeric(fields$size)
  for (number in seq_along(fields$pieces)) {
    width <- breaks[number + 1L] - breaks[number]
    rows <- fields$pieces[[number]]
    if (order > 0) for (step in seq_len(order)) rows <- differentiate_series(rows) * (2 / width)
    if (order < 0) rows <- integrate_series(rows * (width / 2))
    here <- which(place == number)
    if (length(here)) {
      t <- 2 * (u[here] - breaks[number]) / width - 1
      values[here, ] <- sum_series(rows, t) + if (order < 0) rep(before, each = length(here)) else 0
    }
    if (order < 0) before <- before + drop(sum_series(rows, 1))
  }
  values
}

# Rows of `rows` are series in T_0, T_1, ...; Clenshaw's sum, one column for each series.
sum_series <- function(rows, t) {
  count <- ncol(rows)
  one <- two <- matrix(0, length(t), nrow(rows))
  if (count > 1) for (degree in count:2) {
    now <- rep(rows[, degree], each = length(t)) + 2 * t * one - two
    two <- one
    one <- now
  }
  rep(rows[, 1], each = length(t)) + t * one - two
}

differentiate_series <- function(rows) {
  count <- ncol(rows)
  if (count == 1) return(rows * 0)
  found <- matrix(0, nrow(rows), count - 1)
  degree <- count - 1
  while (degree > 2) {
    found[, degree] <- 2 * degree * rows[, degree + 1]
    rows[, degree - 1] <- rows[, degree - 1] + degree * rows[, degree + 1] / (degree - 2)
    degree <- degree - 1
  }
  if (count > 2) found[, 2] <- 4 * rows[, 3]
  found[, 1] <- rows[, 2]
  found
}

integrate_series <- function(rows) {
  count <- ncol(rows)
  found <- matrix(0, nrow(rows), count + 1)
  found[, 2] <- rows[, 1]
  if (count > 1) found[, 3] <- rows[, 2] / 4
  if (count > 2) for (degree in 2:(count - 1)) {
    found[, degree + 2] <- rows[, degree + 1] / (2 * (degree + 1))
    found[, degree] <- found[, degree] - rows[, degree + 1] / (2 * (degree - 1))
  }
  found[, 1] <- found[, 1] - drop(sum_series(found, -1))
  found
}
