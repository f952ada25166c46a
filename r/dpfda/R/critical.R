# Critical values without random draws; docs/questions.md of dpfda states the rule.

STEPS <- 512
KNOWN <- 1e-20
HALVINGS <- 100

nodes <- function() (1 - cos((0:STEPS) * (pi / STEPS))) / 2

erfc <- function(x) 2 * pnorm(-x * sqrt(2))

quadratic <- function(features, covariance) rowSums((features %*% covariance) * features)

path_length <- function(features, covariance) {
  variance <- pmax(quadratic(features, covariance), 0)
  doubtful <- variance > KNOWN * max(variance, 0)
  unit <- features / ifelse(doubtful, sqrt(variance), Inf)
  last <- nrow(unit)
  steps <- quadratic(unit[-1, , drop = FALSE] - unit[-last, , drop = FALSE], covariance)
  sums <- quadratic(unit[-1, , drop = FALSE] + unit[-last, , drop = FALSE], covariance)
  chords <- sqrt(pmin(pmax(pmin(steps, sums), 0), 2))
  sum(ifelse(doubtful[-1] & doubtful[-last], 2 * asin(chords / 2), 0))
}

exceedance <- function(c, kappas) min(1, length(kappas) * erfc(c / sqrt(2)) + sum(kappas) / pi * exp(-c * c / 2))

solve_critical <- function(level, kappas) {
  low <- 0
  high <- 40
  for (halving in seq_len(HALVINGS)) {
    middle <- (low + high) / 2
    if (exceedance(middle, kappas) > 1 - level) low <- middle else high <- middle
  }
  (low + high) / 2
}

solve_one_sided <- function(alpha, starts, kappas) {
  low <- rep(0, length(kappas))
  high <- rep(40, length(kappas))
  for (halving in seq_len(HALVINGS)) {
    middle <- (low + high) / 2
    beyond <- starts * erfc(middle / sqrt(2)) / 2 + kappas * exp(-middle^2 / 2) / (2 * pi)
    low <- ifelse(beyond > alpha, middle, low)
    high <- ifelse(beyond > alpha, high, middle)
  }
  (low + high) / 2
}

pointwise_critical <- function(level) -qnorm((1 - level) / 2)
