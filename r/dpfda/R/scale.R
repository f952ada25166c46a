# A transform of y: laws are those of transformed y, answers are transformed back. `means` counts means of transformed y in a curve:
# 1 is a mean, 0 an effect or a difference (a ratio, if the transform is log), NA what stays on the transformed scale.

MEANS <- list(none = "mean", log = "geometric mean", log1p = "log1p mean", sqrt = "square-root mean")
AVERAGES <- list(none = "average", log = "geometric average", log1p = "log1p average", sqrt = "square-root average")

apply_transform <- function(transform, y) switch(transform, none = y, log = log(y), log1p = log1p(y), sqrt = sqrt(y))

is_taken_back <- function(scale) scale$transform != "none" && isTRUE(scale$means == 1)

is_ratio <- function(scale) scale$transform == "log" && isTRUE(scale$means == 0)

back_of <- function(scale) if (is_taken_back(scale) || is_ratio(scale)) scale$transform else "none"

take_back <- function(scale, values) {
  switch(back_of(scale), none = values, log = exp(values), log1p = expm1(values), sqrt = values^2)
}

back_slope <- function(scale, values) {
  switch(back_of(scale), none = rep(1, length(values)), log = exp(values), log1p = exp(values), sqrt = 2 * values)
}

scale_label <- function(scale, y) {
  if (is_ratio(scale)) return(paste("ratio of", y))
  if (is_taken_back(scale) || scale$transform == "none") y else paste0(scale$transform, "(", y, ")")
}

count_means <- function(scale, means) {
  if (scale$transform != "none" && !is.na(means) && !means %in% c(0, 1)) {
    stop("With a ", scale$transform, " transform of y only differences of means are answered.", call. = FALSE)
  }
  list(transform = scale$transform, means = means)
}

stay_transformed <- function(scale) list(transform = scale$transform, means = NA_real_)

transformed <- function(curve) {
  name <- if (back_of(curve$scale) == "none") curve$name else paste(curve$scale$transform, "of", curve$name)
  change(curve, scale = stay_transformed(curve$scale), name = name)
}

combine_scales <- function(one, other, sign) {
  if (one$transform != other$transform) stop("The curves must have the same transform of y.", call. = FALSE)
  count_means(one, one$means + sign * other$means)
}

refuse_numbers <- function(scale) {
  if (back_of(scale) != "none") {
    stop("A number cannot be added to a curve with a ", scale$transform, " transform; take transformed(curve).", call. = FALSE)
  }
}

refuse_integral <- function(scale) {
  if (back_of(scale) != "none") {
    stop("An integral needs y without a transform; ask for an average, or for that of transformed(curve).", call. = FALSE)
  }
}

refuse_zero <- function(scale) {
  if (is_taken_back(scale)) {
    stop("A ", MEANS[[scale$transform]], " is not tested against zero; ask about a difference of two curves.", call. = FALSE)
  }
}
