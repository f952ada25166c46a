# The golden results that Python and JavaScript are held against, too.

near <- function(found, expected, scale, place) {
  found <- as.numeric(unlist(found))
  expected <- as.numeric(unlist(expected))
  expect_equal(length(found), length(expected), label = place)
  if (length(found) == length(expected) && length(found)) {
    expect_lte(max(abs(found - expected) / pmax(scale, abs(expected))), 1e-10, label = place)
  }
}

choose <- function(result, question) {
  curve <- if (!is.null(question$effect)) {
    effect(result, question$effect)
  } else {
    do.call(curve_at, c(list(result), question$profile))
  }
  if (!is.null(question$minus)) curve <- curve - do.call(curve_at, c(list(result), question$minus))
  if (question$derivative > 0) derivative(curve, question$derivative) else curve
}

check_answer <- function(curve, level, expected, scale, place) {
  x <- as.numeric(unlist(expected$x))
  mean <- average(curve, expected$from, expected$to)
  near(predict(curve, x, level = level)$estimate, expected$estimate, scale, paste(place, "estimate"))
  near(mean$estimate, expected$average, scale, paste(place, "average"))
  if (is.null(expected[["integral"]])) {
    expect_error(integral(curve, expected$from, expected$to), "without a transform")
  } else {
    near(integral(curve, expected$from, expected$to)$estimate, expected[["integral"]], scale, paste(place, "integral"))
  }
  if (is.null(expected$lower)) {
    expect_error(band(curve), "no covariance")
    return()
  }
  both <- band(curve, level, x)
  alone <- band(curve, level, x, simultaneous = FALSE)
  constant <- constant_test(curve, level)
  found <- list(
    standard_error = standard_error(curve, x), path_length = dpfda:::path_of(curve), critical_value = critical_value(curve, level),
    lower = both$lower, upper = both$upper, pointwise_lower = alone$lower, pointwise_upper = alone$upper,
    average_error = mean$standard_error, average_interval = dpfda:::value_interval(mean, level),
    constant_p = constant$p_value,
    constant_intervals = t(as.matrix(constant$intervals))
  )
  if (is.null(expected$zero_p)) {
    expect_error(zero_test(curve, level), "not tested against zero")
    expect_error(dpfda:::value_p(mean), "not tested against zero")
  } else {
    zero <- zero_test(curve, level)
    found <- c(found, list(
      average_p = dpfda:::value_p(mean), zero_p = zero$p_value, zero_statistic = zero$statistic,
      zero_intervals = t(as.matrix(zero$intervals))
    ))
  }
  for (name in names(found)) near(found[[name]], expected[[name]], scale, paste(place, name))
  for (kind in c("argmax", "argmin")) {
    place_found <- if (kind == "argmax") argmax(curve, level) else argmin(curve, level)
    near(place_found$x, expected[[kind]]$x, scale, paste(place, kind))
    near(place_found$value, expected[[kind]]$value, scale, paste(place, kind, "value"))
    near(t(as.matrix(place_found$intervals)), expected[[kind]]$intervals, scale, paste(place, kind, "set"))
  }
}

files <- list.files(system.file("golden", package = "dpfda"), full.names = TRUE)

test_that("there are 32 golden results", expect_length(files, 32))

for (file in files) {
  golden <- jsonlite::fromJSON(file, simplifyVector = FALSE)
  test_that(paste("answers of", basename(file)), {
    result <- dp_result(golden$result)
    scale <- min(1, max(1e-300, abs(unlist(golden$answers[[1]]$estimate))))
    curves <- lapply(golden$questions, function(question) choose(result, question))
    for (number in seq_along(curves)) {
      level <- golden$questions[[number]]$level
      check_answer(curves[[number]], level, golden$answers[[number]], scale, paste(basename(file), number))
    }
    if (!is.null(golden$joint)) {
      domain <- result$law$domain
      bands <- joint_bands(curves, 0.95, seq(domain[1], domain[2], length.out = 3))
      for (number in seq_along(bands)) {
        near(c(bands[[number]]$lower, bands[[number]]$upper), golden$joint[[number]], scale, paste(basename(file), "joint"))
      }
    }
  })
}
