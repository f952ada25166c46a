golden <- function(name) {
  file <- system.file("golden", name, package = "dpfda")
  path <- tempfile(fileext = ".json")
  writeLines(jsonlite::toJSON(jsonlite::fromJSON(file, simplifyVector = FALSE)$result, auto_unbox = TRUE, digits = NA, null = "null"), path)
  path
}

test_that("a result file is read, printed and summarised", {
  result <- dp_read(golden("16.json"))
  expect_output(print(result), "Every subject counts equally")
  table <- summary(result)
  expect_equal(table$curve[2:3], c("male", "bmi"))
  expect_true(all(table$lower <= table$average & table$average <= table$upper))
  expect_named(predict(result, c(0.2, 0.4), male = 1), c("x", "estimate", "standard_error", "lower", "upper"))
})

test_that("of several outcomes one is chosen by its name", {
  one <- jsonlite::fromJSON(golden("16.json"), simplifyVector = FALSE)
  other <- jsonlite::fromJSON(golden("15.json"), simplifyVector = FALSE)
  both <- tempfile(fileext = ".json")
  document <- list(schema = "dpfda-outcomes/1", outcomes = list(sbp = one, dbp = other))
  writeLines(jsonlite::toJSON(document, auto_unbox = TRUE, digits = NA, null = "null"), both)
  expect_equal(summary(dp_read(both, y = "sbp")), summary(dp_read(golden("16.json"))))
  expect_equal(summary(dp_read(both, y = "dbp")), summary(dp_read(golden("15.json"))))
  for (wrong in list(NULL, "hr", c("sbp", "dbp"))) expect_error(dp_read(both, y = wrong), "holds the outcomes sbp, dbp")
})

test_that("a file that names another one, or an address, opens neither", {
  other <- golden("16.json")
  pointer <- tempfile(fileext = ".json")
  for (content in c(other, paste0("file://", other))) {
    writeLines(content, pointer)
    expect_error(dp_read(pointer), "is not a result")
  }
})

test_that("days from a date are shown and taken as dates", {
  document <- jsonlite::fromJSON(golden("15.json"), simplifyVector = FALSE)
  days <- dp_result(document)
  document$study$x_origin <- "2018-03-01"
  result <- dp_result(document)
  curve <- curve_at(result, dose = 1)
  when <- as.Date("2018-03-01") + c(100, 300)
  expect_equal(predict(curve, when)$estimate, predict(curve_at(days, dose = 1), c(100, 300))$estimate)
  expect_equal(predict(curve, format(when))$x, when)
  expect_s3_class(band(curve)$x, "Date")
  expect_s3_class(argmax(curve)$x, "Date")
  expect_output(print(argmax(curve)), "at 20[0-9]{2}-[0-9]{2}-[0-9]{2} ")
  expect_output(print(curve), "in 2018-")
  expect_equal(average(curve, when[1], when[2])$estimate, average(curve_at(days, dose = 1), 100, 300)$estimate)
  expect_error(predict(curve_at(days, dose = 1), "2018-03-01"), "must hold numbers")
})

test_that("a report holds its result", {
  page <- tempfile(fileext = ".html")
  text <- paste(readLines(golden("06.json")), collapse = "\n")
  writeLines(paste0("<html><script type=\"application/json\" id=\"dpfda-result\">", text, "</script></html>"), page)
  expect_s3_class(dp_read(page), "dp_result")
})

test_that("curves are added, subtracted and multiplied with their joint uncertainty", {
  result <- dp_read(golden("15.json"))
  a <- curve_at(result, dose = 1)
  b <- curve_at(result, dose = 0)
  x <- c(100, 300)
  expect_equal(predict(a - b, x), predict(contrast(result, list(dose = 1), list(dose = 0)), x))
  expect_equal(predict(a - b, x)$standard_error, predict(effect(result, "dose"), x)$standard_error)
  expect_equal(predict(2 * a - a / 2 + 1, x)$estimate, 1.5 * predict(a, x)$estimate + 1)
  expect_equal(predict(1 - a, x)$estimate, 1 - predict(a, x)$estimate)
  expect_equal(predict(-a, x)$estimate, -predict(a, x)$estimate)
  expect_equal((average(a) - average(b))$estimate, average(a - b)$estimate)
  expect_equal(predict(a - average(a), x)$estimate, predict(a, x)$estimate - average(a)$estimate)
  expect_output(print(average(a)), "95% interval")
  expect_output(print(a), "Released curve")
  expect_output(print(zero_test(a - b)), "p = ")
  expect_output(print(argmax(a)), "confidence set")
  expect_error(a > b, "added, subtracted")
})

test_that("curves of two fits are joined only if the user says so", {
  a <- curve_at(dp_read(golden("04.json")))
  b <- curve_at(dp_read(golden("07.json")))
  expect_error(a - b, "independent = TRUE")
  both <- standard_error(minus(a, b, independent = TRUE), 0.3)
  expect_equal(both, sqrt(standard_error(a, 0.3)^2 + standard_error(b, 0.3)^2))
})

test_that("what cannot be is refused in a sentence", {
  result <- dp_read(golden("17.json"))
  expect_error(curve_at(result, sex = 1), "'sex' is not a covariate of this fit; choose from arm, age")
  expect_error(curve_at(result, arm = "D"), "arm must be one of A, B, C")
  expect_error(curve_at(result, age = 200), "age must lie within its public bounds 20 to 80")
  expect_error(effect(result, "arm"), "is not a coefficient")
  expect_error(predict(curve_at(result), 7), "x must lie in the domain")
  expect_error(derivative(curve_at(dp_read(golden("01.json")))), "free ends")
  expect_error(dp_read("nowhere.json"), "There is no file")
  old <- tempfile(fileext = ".json")
  writeLines("{\"schema\": \"dpfda-result/1\"}", old)
  expect_error(dp_read(old), "version 0.1")
  writeLines("no json", old)
  expect_error(dp_read(old), "is not a result")
})

test_that("pictures are drawn", {
  skip_if_not_installed("ggplot2")
  result <- dp_read(golden("15.json"))
  expect_s3_class(ggplot2::autoplot(curve_at(result)), "ggplot")
  expect_s3_class(ggplot2::autoplot(result), "ggplot")
})

test_that("a fit runs the command line and reads its result", {
  command <- Sys.getenv("DPFDA")
  skip_if(command == "", "DPFDA does not name the command dpfda")
  folder <- tempfile()
  dir.create(folder)
  file <- file.path(folder, "visits.csv")
  rows <- data.frame(pid = rep(1:300, each = 4), age = 20 + (1:1200 * 7) %% 60)
  rows$hdl <- 50 + rows$age / 10 + (rows$pid * 13) %% 21 - 10
  write.csv(rows, file, row.names = FALSE)
  expect_error(dp_fit(file, id = "pid", x = "age", y = "hdl", dpfda = command), "--epsilon, --delta must be given")
  system2(command, c("budget", "init", shQuote(file), "--epsilon", "3", "--delta", "1e-5"), stdout = FALSE, stderr = FALSE)
  result <- dp_fit(
    file, id = "pid", x = "age", y = "hdl", domain = "20:80", y_bounds = "0:150", epsilon = 1, delta = 1e-5, dpfda = command
  )
  expect_s3_class(result, "dp_result")
  expect_true(all(is.finite(predict(result, c(30, 60))$estimate)))
})
