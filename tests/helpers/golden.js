// Answers every golden question; reads golden JSON on stdin (a list), writes answers.
const answerGolden = (golden) => {
  const result = dpfdaQuestions.open(golden.result);
  const choose = (question) => {
    let curve = question.effect ? result.effect(question.effect) : result.curveAt(question.profile);
    if (question.minus) curve = curve.minus(result.curveAt(question.minus));
    return question.derivative ? curve.derivative(question.derivative) : curve;
  };
  const isRefused = (ask) => { try { ask(); return false; } catch (error) { return true; } };
  const place = (found) => ({ x: found.x, value: found.value, intervals: found.intervals });
  const answer = (curve, level, expected) => {
    const { x, from, to } = expected, mean = curve.average(from, to), isTested = "zero_p" in expected;
    const found = { x, estimate: x.map((each) => curve.at(each)), from, to, average: mean.at(from) };
    if ("integral" in expected) found.integral = curve.integral(from, to).at(from);
    else found.integral_refused = isRefused(() => curve.integral(from, to));
    if (!curve.hasBand) return found;
    const band = curve.band(level, x), alone = curve.band(level, x, false), zero = isTested ? curve.isZero(level) : null, constant = curve.isConstant(level);
    return {
      ...found, standard_error: x.map((each) => curve.standardError(each)), path_length: curve.pathLength, critical_value: curve.criticalValue(level),
      lower: band.map((pair) => pair[0]), upper: band.map((pair) => pair[1]), pointwise_lower: alone.map((pair) => pair[0]),
      pointwise_upper: alone.map((pair) => pair[1]), average_error: mean.standardError(from), average_interval: mean.interval(level),
      ...(isTested ? { average_p: mean.pValue(), zero_p: zero.pValue, zero_statistic: zero.statistic, zero_intervals: zero.intervals } : { zero_refused: isRefused(() => curve.isZero(level)) && isRefused(() => mean.pValue()) }), constant_p: constant.pValue,
      constant_intervals: constant.intervals, argmax: place(curve.extremum(level, 1)), argmin: place(curve.extremum(level, -1)),
    };
  };
  const curves = golden.questions.map(choose), found = { answers: curves.map((curve, k) => answer(curve, golden.questions[k].level, golden.answers[k])) };
  if (curves[0].hasBand) {
    const [low, high] = result.domain;
    found.joint = result.jointBands(curves, 0.95, [low, (low + high) / 2, high]).map((pairs) => [0, 1].map((side) => pairs.map((pair) => pair[side])));
  }
  return found;
};
