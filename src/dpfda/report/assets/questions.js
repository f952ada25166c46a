"use strict";
// Answers from the model of a result: the same numbers as dpfda.inference in Python and the R package (docs/questions.md states the rules).
const dpfdaQuestions = (() => {
  const STEPS = 512, KNOWN = 1e-20, HALVINGS = 100, CELLS = 400, FOR_SLOPES = 0.9, SAME = 1e-12;

  // Functions: waves, and pieces of Chebyshev polynomials.
  const sumSeries = (row, t) => {
    let one = 0, two = 0;
    for (let degree = row.length - 1; degree > 0; degree--) [one, two] = [row[degree] + 2 * t * one - two, one];
    return row[0] + t * one - two;
  };
  const differentiate = (series) => {
    const row = series.slice(), count = row.length;
    if (count === 1) return [0];
    const found = new Array(count - 1).fill(0);
    for (let degree = count - 1; degree > 2; degree--) {
      found[degree - 1] = 2 * degree * row[degree];
      row[degree - 2] += degree * row[degree] / (degree - 2);
    }
    if (count > 2) found[1] = 4 * row[2];
    found[0] = row[1];
    return found;
  };
  const integrate = (row) => {
    const found = new Array(row.length + 1).fill(0);
    found[1] = row[0];
    if (row.length > 1) found[2] = row[1] / 4;
    for (let degree = 2; degree < row.length; degree++) {
      found[degree + 1] = row[degree] / (2 * (degree + 1));
      found[degree - 1] -= row[degree] / (2 * (degree - 1));
    }
    found[0] -= sumSeries(found, -1);
    return found;
  };
  const makeEvaluator = (fields) => {
    if (fields.kind === "waves") return (u, order) => fields.multiples.map((multiple, index) => {
      const theta = fields.angle * u * multiple, speed = fields.angle * multiple, scale = fields.scales[index];
      if (order === -1) return scale * (multiple === 0 ? u : fields.quarters[index] === 1 ? (1 - Math.cos(theta)) / speed : Math.sin(theta) / speed);
      const turns = (((fields.quarters[index] - order) % 4) + 4) % 4;
      return (turns % 2 === 1 ? Math.sin(theta) : Math.cos(theta)) * (turns >= 2 ? -1 : 1) * scale * speed ** order;
    });
    const breaks = fields.breaks, kept = new Map();
    const seriesOf = (order) => {
      if (!kept.has(order)) {
        let before = new Array(fields.size).fill(0);
        kept.set(order, fields.pieces.map((piece, number) => {
          const width = breaks[number + 1] - breaks[number], start = before;
          let rows = piece;
          for (let step = 0; step < order; step++) rows = rows.map((row) => differentiate(row).map((value) => value * (2 / width)));
          if (order < 0) {
            rows = rows.map((row) => integrate(row.map((value) => value * (width / 2))));
            before = rows.map((row, index) => start[index] + sumSeries(row, 1));
          }
          return { rows, start };
        }));
      }
      return kept.get(order);
    };
    return (u, order) => {
      let place = 0;
      while (place < breaks.length - 2 && u >= breaks[place + 1]) place++;
      const { rows, start } = seriesOf(order)[place];
      const t = 2 * (u - breaks[place]) / (breaks[place + 1] - breaks[place]) - 1;
      return rows.map((row, index) => sumSeries(row, t) + (order < 0 ? start[index] : 0));
    };
  };

  // The normal law.
  const erfc = (x) => {
    if (x < 0) return 2 - erfc(-x);
    if (x < 2.5) {
      let term = x, total = x;
      for (let n = 1; term > total * 1e-17; n++) { term *= 2 * x * x / (2 * n + 1); total += term; }
      return 1 - 2 / Math.sqrt(Math.PI) * Math.exp(-x * x) * total;
    }
    let fraction = 0;
    for (let n = 120; n > 0; n--) fraction = n / 2 / (x + fraction);
    return Math.exp(-x * x) / Math.sqrt(Math.PI) / (x + fraction);
  };
  const bisect = (isBeyond) => {
    let low = 0, high = 40;
    for (let halving = 0; halving < HALVINGS; halving++) {
      const middle = (low + high) / 2;
      if (isBeyond(middle)) low = middle; else high = middle;
    }
    return (low + high) / 2;
  };
  const exceedance = (c, kappas) => Math.min(1, kappas.length * erfc(c / Math.SQRT2)
    + kappas.reduce((a, b) => a + b, 0) / Math.PI * Math.exp(-c * c / 2));
  const solveCritical = (level, kappas) => bisect((c) => exceedance(c, kappas) > 1 - level);
  const solveOneSided = (alpha, starts, kappa) =>
    bisect((c) => starts * erfc(c / Math.SQRT2) / 2 + kappa * Math.exp(-c * c / 2) / (2 * Math.PI) > alpha);
  const normalTail = (alpha) => bisect((c) => erfc(c / Math.SQRT2) > alpha);  // two-sided

  // Linear algebra.
  const dot = (a, b) => { let sum = 0; for (let k = 0; k < a.length; k++) sum += a[k] * b[k]; return sum; };
  const apply = (matrix, vector) => matrix.map((row) => dot(row, vector));
  const quadratic = (matrix, vector) => dot(vector, apply(matrix, vector));
  const clip = (value, [low, high]) => Math.min(Math.max(value, low), high);

  const readLaw = (model) => {
    const columns = model.coefficients.length, size = model.functions.size, total = columns * size;
    let covariance = null;
    if (model.covariance !== null) {
      covariance = Array.from({ length: total }, () => new Float64Array(total));
      let place = 0;
      for (let i = 0; i < total; i++) for (let j = 0; j <= i; j++) covariance[i][j] = covariance[j][i] = model.covariance[place++];
    }
    return { domain: model.domain, length: model.domain[1] - model.domain[0], evaluate: makeEvaluator(model.functions),
      mean: model.coefficients, covariance, columns, size, transform: model.transform ?? "none" };
  };

  // B-splines of a covariate on public knots, all but the first: de Boor's recurrence.
  const splineEntries = ({ knots, degree }, [low, high], value) => {
    const all = [...new Array(degree + 1).fill(low), ...knots, ...new Array(degree + 1).fill(high)], at = clip(value, [low, high]);
    let piece = degree;
    while (piece < all.length - degree - 2 && at >= all[piece + 1]) piece++;
    let found = Array.from({ length: all.length - 1 }, (_, k) => Number(k === piece));
    for (let order = 1; order <= degree; order++) {
      found = Array.from({ length: found.length - 1 }, (_, k) => {
        const rising = all[k + order] - all[k], falling = all[k + order + 1] - all[k + 1];
        return (rising > 0 ? (at - all[k]) / rising * found[k] : 0) + (falling > 0 ? (all[k + order + 1] - at) / falling * found[k + 1] : 0);
      });
    }
    return found.slice(1);
  };

  // A transform of y: laws are those of transformed y, answers are transformed back. `means` counts means of transformed y: 1 is a mean, 0 an
  // effect or a difference (a ratio, if the transform is log), null what stays on the transformed scale.
  const MEANS = { none: "mean", log: "geometric mean", log1p: "log1p mean", sqrt: "square-root mean" };
  const AVERAGES = { none: "average", log: "geometric average", log1p: "log1p average", sqrt: "square-root average" };
  const APPLY = { none: (y) => y, log: Math.log, log1p: Math.log1p, sqrt: Math.sqrt };
  const UNDO = { none: (value) => value, log: Math.exp, log1p: Math.expm1, sqrt: (value) => value * value };
  const SLOPE = { none: () => 1, log: Math.exp, log1p: Math.exp, sqrt: (value) => 2 * value };
  const countMeans = (transform, means) => {
    if (transform !== "none" && means !== null && means !== 0 && means !== 1) throw new Error(`With a ${transform} transform of y only differences of means are answered.`);
    return means;
  };

  const timesLimits = (limits, factor) => factor === 0 ? [0, 0] : [limits[0] * factor, limits[1] * factor].sort((a, b) => a - b);
  const ANYTHING = [-Infinity, Infinity];

  class Curve {
    constructor(law, weights, fixed, constant, limits, name, means = 1) {
      Object.assign(this, { law, weights, fixed, constant, limits, name, means });
      this.orders = Object.keys(weights).map(Number).sort((a, b) => a - b);
    }
    get isMean() { return this.means === 1 && this.law.transform !== "none"; }  // of transformed y, transformed back
    get isRatio() { return this.means === 0 && this.law.transform === "log"; }
    get back() { return this.isMean || this.isRatio ? this.law.transform : "none"; }
    get averageName() { return AVERAGES[this.back]; }
    show(value) { return UNDO[this.back](clip(value, this.limits)); }
    get hasBand() { return this.law.covariance !== null; }
    get hasFreeEnds() {
      const slopes = [0, 0.3, 0.5, 0.7, 1].map((u) => Math.max(...this.law.evaluate(u, 1).map(Math.abs))), steepest = Math.max(...slopes);
      return steepest === 0 || Math.min(slopes[0], slopes[4]) > 1e-9 * steepest;
    }
    features(u) {
      const row = [];
      for (const order of this.orders) {
        const unit = this.law.length ** order;
        for (const value of this.law.evaluate(u, order)) row.push(value / unit);
      }
      if (this.fixed !== null) row.push(1);
      return row;
    }
    get coefficients() {
      if (!this._coefficients) {
        const { mean, size } = this.law, found = [];
        for (const order of this.orders) for (let l = 0; l < size; l++) found.push(dot(this.weights[order], mean.map((row) => row[l])));
        if (this.fixed !== null) found.push(dot(this.fixed, mean.flat()));
        this._coefficients = found;
      }
      return this._coefficients;
    }
    get covariance() {
      if (!this._covariance) {
        const { size, columns, covariance } = this.law, rows = [];
        for (const order of this.orders) for (let l = 0; l < size; l++) {
          const row = new Float64Array(columns * size);
          for (let j = 0; j < columns; j++) row[j * size + l] = this.weights[order][j];
          rows.push(row);
        }
        if (this.fixed !== null) rows.push(Float64Array.from(this.fixed));
        const sparse = rows.map((row) => Array.from(row.keys()).filter((k) => row[k] !== 0));
        const half = rows.map((row, r) => {
          const found = new Float64Array(columns * size);
          for (const k of sparse[r]) for (let m = 0; m < found.length; m++) found[m] += row[k] * covariance[k][m];
          return found;
        });
        this._covariance = half.map((row) => rows.map((other, r) => { let sum = 0; for (const k of sparse[r]) sum += row[k] * other[k]; return sum; }));
      }
      return this._covariance;
    }
    unit(x) { return Math.min(1, Math.max(0, (x - this.law.domain[0]) / this.law.length)); }
    raw(u) { return dot(this.features(u), this.coefficients) + this.constant; }
    sdUnit(u) { return Math.sqrt(Math.max(0, quadratic(this.covariance, this.features(u)))); }
    at(x) { return this.show(this.raw(this.unit(x))); }
    standardError(x) { return SLOPE[this.back](clip(this.raw(this.unit(x)), this.limits)) * this.sdUnit(this.unit(x)); }
    get onNodes() {
      if (!this._nodes) {
        const u = Array.from({ length: STEPS + 1 }, (_, k) => (1 - Math.cos(k * (Math.PI / STEPS))) / 2);
        const features = u.map((each) => this.features(each));
        this._nodes = { u, features, variance: features.map((row) => Math.max(0, quadratic(this.covariance, row))) };
      }
      return this._nodes;
    }
    get pathLength() {
      if (this._kappa === undefined) {
        const { features, variance } = this.onNodes, largest = Math.max(0, ...variance);
        const doubtful = variance.map((each) => each > KNOWN * largest);
        const unit = features.map((row, k) => doubtful[k] ? row.map((value) => value / Math.sqrt(variance[k])) : row.map(() => 0));
        let kappa = 0;
        for (let k = 1; k < unit.length; k++) {
          if (!doubtful[k] || !doubtful[k - 1]) continue;
          const step = quadratic(this.covariance, unit[k].map((value, i) => value - unit[k - 1][i]));
          const sum = quadratic(this.covariance, unit[k].map((value, i) => value + unit[k - 1][i]));
          kappa += 2 * Math.asin(Math.sqrt(clip(Math.min(step, sum), [0, 2])) / 2);
        }
        this._kappa = kappa;
      }
      return this._kappa;
    }
    criticalValue(level) { return solveCritical(level, [this.pathLength]); }
    limitsAt(x, c) {
      const centre = this.raw(this.unit(x)), half = c * this.sdUnit(this.unit(x));
      return [this.show(centre - half), this.show(centre + half)];
    }
    band(level, places, simultaneous = true) {
      const c = simultaneous ? this.criticalValue(level) : normalTail(1 - level);
      return places.map((x) => this.limitsAt(x, c));
    }
    derivative(order = 1) {
      if (!this.hasFreeEnds) throw new Error("derivative needs a basis with free ends: the cosines of this fit are level at both ends of the domain.");
      const weights = {};
      for (const each of this.orders) weights[each + order] = this.weights[each];
      const name = this.back === "log" && order === 1 ? `relative growth rate of ${this.name}` : `derivative of ${this.name}`;
      return new Curve(this.law, weights, null, 0, ANYTHING, this.back === "none" || this.back === "log" ? name : `${name}, of ${this.law.transform}(y)`, null);
    }
    combine(other, sign) {
      const weights = { ...this.weights };
      for (const order of other.orders) {
        const theirs = other.weights[order].map((value) => sign * value);
        weights[order] = weights[order] ? weights[order].map((value, j) => value + theirs[j]) : theirs;
      }
      const theirs = other.fixed && other.fixed.map((value) => sign * value);
      const fixed = !this.fixed ? theirs : !theirs ? this.fixed : this.fixed.map((value, k) => value + theirs[k]);
      const limits = timesLimits(other.limits, sign), { transform } = this.law;
      const means = countMeans(transform, this.means === null || other.means === null ? null : this.means + sign * other.means);
      const mark = transform === "log" && means !== null ? (sign > 0 ? "*" : "/") : (sign > 0 ? "+" : "-");
      return new Curve(this.law, weights, fixed, this.constant + sign * other.constant,
        [this.limits[0] + limits[0], this.limits[1] + limits[1]], `(${this.name}) ${mark} (${other.name})`, means);
    }
    plus(other) { return this.combine(other, 1); }
    minus(other) { return this.combine(other, -1); }
    times(factor) {
      return this.scaled(factor, countMeans(this.law.transform, this.means === null ? null : factor * this.means));
    }
    scaled(factor, means) {
      const weights = {};
      for (const order of this.orders) weights[order] = this.weights[order].map((value) => factor * value);
      return new Curve(this.law, weights, this.fixed && this.fixed.map((value) => factor * value), factor * this.constant,
        timesLimits(this.limits, factor), `${factor} (${this.name})`, means);
    }
    integral(low, high) {
      if (this.back !== "none") throw new Error(`An integral needs y without a transform; with ${this.law.transform} ask for an average.`);
      return this.sumUp(low, high);
    }
    sumUp(low = this.law.domain[0], high = this.law.domain[1]) {
      const { law } = this, [a, b] = [this.unit(low), this.unit(high)];
      let fixed = this.fixed ? this.fixed.map((value) => value * (b - a) * law.length) : new Array(law.columns * law.size).fill(0);
      for (const order of this.orders) {
        const unit = law.length ** (1 - order), left = law.evaluate(a, order - 1), right = law.evaluate(b, order - 1);
        fixed = fixed.map((value, k) => value + this.weights[order][Math.floor(k / law.size)] * (right[k % law.size] - left[k % law.size]) * unit);
      }
      return new Curve(law, {}, fixed, this.constant * (high - low), timesLimits(this.limits, high - low), `integral of ${this.name}`, this.means);
    }
    average(low = this.law.domain[0], high = this.law.domain[1]) { return this.sumUp(low, high).scaled(1 / (high - low), this.means); }
    interval(level) { return this.limitsAt(this.law.domain[0], normalTail(1 - level)); }  // of an average or an integral
    refuseZero() {
      if (this.isMean) throw new Error(`A ${MEANS[this.law.transform]} is not tested against zero; ask about a difference.`);
    }
    pValue() {
      this.refuseZero();
      const centre = Math.abs(this.raw(0)), sd = this.sdUnit(0);
      return sd > 0 ? erfc(centre / sd / Math.SQRT2) : Number(centre === 0);
    }
    isZero(level) {
      this.refuseZero();
      const { u, features, variance } = this.onNodes, largest = Math.max(0, ...variance), c = this.criticalValue(level);
      const ratios = features.map((row, k) => variance[k] > KNOWN * largest ? (dot(row, this.coefficients) + this.constant) / Math.sqrt(variance[k]) : 0);
      const statistic = Math.max(...ratios.map(Math.abs)), pValue = exceedance(statistic, [this.pathLength]);
      const signs = ratios.map((ratio) => ratio > c ? 1 : ratio < -c ? -1 : 0), intervals = [], x = (each) => this.law.domain[0] + this.law.length * each;
      for (let start = 0; start < signs.length; start++) {
        if (signs[start] === 0 || (start > 0 && signs[start - 1] === signs[start])) continue;
        let end = start;
        while (end + 1 < signs.length && signs[end + 1] === signs[start]) end++;
        const left = start === 0 ? u[0] : this.crossing(u[start - 1], u[start], c, signs[start]);
        const right = end === u.length - 1 ? u[end] : this.crossing(u[end + 1], u[end], c, signs[start]);
        intervals.push([x(left), x(right), signs[start]]);
      }
      return { pValue, statistic, rejected: pValue < 1 - level, intervals };
    }
    crossing(outside, inside, c, sign) {
      for (let halving = 0; halving < 60; halving++) {
        const middle = (outside + inside) / 2;
        if (sign * this.raw(middle) > c * this.sdUnit(middle)) inside = middle; else outside = middle;
      }
      return (outside + inside) / 2;
    }
    isConstant(level) { return this.minus(this.average()).isZero(level); }
    extremum(level, sign = 1) {
      const u = Array.from({ length: CELLS + 1 }, (_, k) => k / CELLS), values = u.map((each) => sign * this.raw(each)), alpha = 1 - level;
      const slopes = this.hasFreeEnds, near = this.notExceeded(u, values, slopes ? alpha * (1 - FOR_SLOPES) : alpha);
      const level_ = slopes ? this.levelCells(u, alpha * FOR_SLOPES, sign) : null;
      const cells = Array.from({ length: CELLS }, (_, k) => (near[k] || near[k + 1]) && (!level_ || level_[k]));
      const best = values.indexOf(Math.max(...values)), x = (each) => this.law.domain[0] + this.law.length * each;
      for (const cell of [best - 1, best]) if (cell >= 0 && cell < CELLS) cells[cell] = true;
      const intervals = [];
      for (let start = 0; start < CELLS; start++) {
        if (!cells[start] || (start > 0 && cells[start - 1])) continue;
        let end = start;
        while (end + 1 < CELLS && cells[end + 1]) end++;
        intervals.push([x(start / CELLS), x((end + 1) / CELLS)]);
      }
      return { x: x(u[best]), value: this.show(this.raw(u[best])), intervals };
    }
    notExceeded(u, values, alpha) {
      const features = u.map((each) => this.features(each)), half = features.map((row) => apply(this.covariance, row));
      const between = half.map((row) => features.map((other) => dot(row, other))), own = between.map((row, k) => row[k]), most = SAME * Math.max(0, ...own);
      return u.map((_, k) => {
        let largest = -Infinity, kappa = 0, before = null;
        for (let j = 0; j < u.length; j++) {
          const spread = own[k] - 2 * between[k][j] + own[j], doubtful = spread > most, sd = Math.sqrt(doubtful ? spread : 1);
          largest = Math.max(largest, doubtful ? (values[j] - values[k]) / sd : 0);
          if (before && before.doubtful && doubtful && j !== k && j - 1 !== k) {
            const joint = between[j - 1][j] - between[k][j - 1] - between[k][j] + own[k];
            kappa += Math.acos(clip(joint / (sd * before.sd), [-1, 1]));
          }
          before = { doubtful, sd };
        }
        return largest <= solveOneSided(alpha, k === 0 || k === u.length - 1 ? 1 : 2, kappa);
      });
    }
    levelCells(u, alpha, sign) {
      const slope = this.derivative(), steep = u.map((each) => sign * slope.raw(each)), variance = u.map((each) => slope.sdUnit(each) ** 2);
      const largest = Math.max(0, ...variance), sd = variance.map((each) => each > KNOWN * largest ? Math.sqrt(each) : 0), last = u.length - 1;
      const two = normalTail(alpha), one = normalTail(Math.min(2 * alpha, 1)), kept = steep.map((each, k) => Math.abs(each) <= two * sd[k]);
      kept[0] = steep[0] <= one * sd[0];
      kept[last] = steep[last] >= -one * sd[last];
      return Array.from({ length: last }, (_, k) => kept[k] || kept[k + 1] || steep[k] * steep[k + 1] <= 0);
    }
  }

  const open = (result) => {
    const model = result.model, law = readLaw(model);
    const mean = MEANS[law.transform], end = (limit, none) => limit === null ? none : APPLY[law.transform](limit);
    const limits = [end(model.limits[0], -Infinity), end(model.limits[1], Infinity)];
    const valueOf = (covariate, profile) => profile[covariate.name] ?? covariate.reference;
    const byName = new Map(model.covariates.map((each) => [each.name, each]));
    const factorEntries = ({ name, spline }, profile) => {
      const covariate = byName.get(name), value = valueOf(covariate, profile);
      if (covariate.bounds === null) return covariate.levels.slice(1).map((level) => Number(level === String(value)));
      return spline === null ? [Number(value)] : splineEntries(spline, covariate.bounds, Number(value));
    };
    const row = (profile) => {
      const entries = model.terms.flatMap((term) => term.map((factor) => factorEntries(factor, profile))
        .reduce((before, next) => before.flatMap((one) => next.map((other) => one * other)), [1]));
      return model.intercept ? [1, ...entries] : entries;
    };
    const short = (value) => typeof value === "number" ? String(Number(value.toPrecision(6))) : value;
    const name = (profile) => model.covariates.length ? `${mean} at ${model.covariates.map((each) => `${each.name}=${short(valueOf(each, profile))}`).join(", ")}` : mean;
    return {
      covariates: model.covariates, columns: model.columns, domain: model.domain, transform: law.transform,
      curveAt: (profile = {}) => new Curve(law, { 0: row(profile) }, null, 0, limits, name(profile)),
      effect: (column) => new Curve(law, { 0: model.columns.map((each) => Number(each === column)) }, null, 0, column === "mean" ? limits : ANYTHING, column,
        column === "mean" || column === "intercept" ? 1 : 0),
      jointBands: (curves, level, places) => {
        const c = solveCritical(level, curves.map((curve) => curve.pathLength));
        return curves.map((curve) => places.map((x) => curve.limitsAt(x, c)));
      },
    };
  };
  return { open };
})();
