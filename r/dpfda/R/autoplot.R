autoplot.dp_curve <- function(object, level = 0.95, ...) {
  table <- predict(object, level = level)
  x <- estimate <- lower <- upper <- NULL
  picture <- ggplot2::ggplot(table, ggplot2::aes(x, estimate)) + ggplot2::geom_line(colour = "#1b6ca8") +
    ggplot2::labs(x = object$x_name, y = scale_label(object$scale, object$y_name), title = object$name)
  if (is.null(table$lower)) return(picture)
  picture + ggplot2::geom_ribbon(ggplot2::aes(ymin = lower, ymax = upper), fill = "#1b6ca8", alpha = 0.18)
}

autoplot.dp_result <- function(object, level = 0.95, ...) {
  tables <- lapply(list_curves(object), function(curve) cbind(curve = curve$name, predict(curve, level = level)))
  table <- do.call(rbind, tables)
  x <- estimate <- lower <- upper <- NULL
  picture <- ggplot2::ggplot(table, ggplot2::aes(x, estimate)) + ggplot2::geom_line(colour = "#1b6ca8") +
    ggplot2::facet_wrap("curve", scales = "free_y") + ggplot2::labs(x = object$x_name, y = object$y_name)
  if (is.null(table$lower)) return(picture)
  picture + ggplot2::geom_ribbon(ggplot2::aes(ymin = lower, ymax = upper), fill = "#1b6ca8", alpha = 0.18)
}
