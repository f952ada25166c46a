"use strict";
// The form "Ask the curves": profiles, contrasts, slopes, levels; answers by questions.js. One for each outcome of a page.
const dpfdaAsk = (section, result) => {
  const answers = dpfdaQuestions.open(result);
  const study = result.study, origin = study.x_origin, form = section.querySelector("form"), field = (name) => form.elements.namedItem(name);
  const isNarrow = section.clientWidth < 600, GRID = 201, WIDTH = isNarrow ? 420 : 880, HEIGHT = isNarrow ? 300 : 380, LEFT = 64, RIGHT = 14, TOP = 14, BOTTOM = 50, ROWS = 21, MOST_TICKS = 100, END_OF_DATES = 12 * 10000;

  const shown = (value) => {
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-4 || size >= 1e7)) return value.toExponential(3);
    return value.toLocaleString("en-US", { maximumSignificantDigits: 4 });
  };
  const placeName = (x) => origin === null ? shown(x) : new Date(Date.parse(`${origin}T00:00:00Z`) + Math.round(x) * 864e5).toISOString().slice(0, 10);
  const momentName = (x) => new Date(Date.parse(`${origin}T00:00:00Z`) + Math.round(x * 86400) * 1000).toISOString().slice(0, 19).replace("T00:00:00", "");
  const span = ([low, high]) => `${placeName(low)} to ${placeName(high)}`;

  const profileOf = (side) => {
    const profile = {};
    for (const covariate of answers.covariates) {
      const input = field(`${side}:${covariate.name}`);
      if (covariate.bounds === null) { profile[covariate.name] = input.value; continue; }
      const number = Number(input.value), [low, high] = covariate.bounds;
      if (input.value === "" || !(number >= low && number <= high)) throw new Error(`${covariate.name} must lie within its public bounds ${shown(low)} to ${shown(high)}.`);
      profile[covariate.name] = number;
    }
    return profile;
  };
  const chosen = () => {
    const what = field("what").value;
    let curve = what === "profile" || what === "contrast" ? answers.curveAt(profileOf("one")) : answers.effect(what.slice("effect:".length));
    if (what === "contrast") curve = curve.minus(answers.curveAt(profileOf("other")));
    return field("slope").checked ? curve.derivative() : curve;
  };

  const ticks = (low, high, about) => {
    const rough = (high - low) / about, unit = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 2.5, 5, 10].map((factor) => factor * unit).find((each) => each >= rough * 0.999);
    const begin = Math.ceil(low / step - 1e-9), count = Math.floor(high / step + 1e-9) - begin + 1;
    if (!(count > 0 && count < MOST_TICKS)) return [];  // no range, or one that doubles cannot divide
    return Array.from({ length: count }, (_, k) => Number(((begin + k) * step).toPrecision(12)));
  };
  const placeTicks = (low, high, about) => {
    if (origin === null) return ticks(low, high, about).map((tick) => [tick, shown(tick)]);
    const start = new Date(`${origin}T00:00:00Z`), months = [1, 2, 3, 6, 12, 24, 60, 120, 240, 600].find((step) => (high - low) / 30.8 / step <= about) || 600;
    const found = [], begin = new Date(start.getTime() + Math.floor(low) * 864e5);
    for (let number = begin.getUTCFullYear() * 12 + begin.getUTCMonth(); number < END_OF_DATES; number++) {
      const day = (Date.UTC(Math.floor(number / 12), number % 12, 1) - start) / 864e5, year = Math.floor(number / 12);
      if (day > high) break;
      if (number % months === 0 && day >= low) found.push([day, months < 12 ? `${year}-${String(number % 12 + 1).padStart(2, "0")}` : String(year)]);
    }
    return found.length > 2 ? found : ticks(low, high, Math.min(about, 5)).filter(Number.isInteger).map((tick) => [tick, placeName(tick)]);
  };
  const make = (name, attributes, text) => {
    const node = document.createElementNS(section.querySelector("svg").namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const draw = (curve, x, values, band, isLevelShown) => {
    const svg = section.querySelector("svg");
    svg.replaceChildren();
    svg.setAttribute("aria-label", curve.name);
    svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
    const neutral = curve.isRatio ? 1 : 0;
    const halves = band ? band.map(([low, high]) => (high - low) / 2).sort((a, b) => a - b) : [0], typical = halves[Math.floor(halves.length / 2)];
    const sides = band ? band.flatMap(([low, high], k) => [Math.max(low, values[k] - 5 * typical), Math.min(high, values[k] + 5 * typical)]) : [];
    const all = [...values, ...sides, ...(isLevelShown ? [] : [neutral])], room = 0.06 * (Math.max(...all) - Math.min(...all)) || 0.1 * Math.max(Math.abs(Math.max(...all)), 1);
    const [bottom, top] = [Math.min(...all) - room, Math.max(...all) + room], [first, last] = answers.domain;
    const across = (each) => LEFT + (each - first) / (last - first) * (WIDTH - LEFT - RIGHT);
    const up = (each) => HEIGHT - BOTTOM - (Math.min(Math.max(each, bottom), top) - bottom) / (top - bottom) * (HEIGHT - TOP - BOTTOM);
    const path = (points) => "M" + points.map(([a, b]) => `${across(a).toFixed(1)},${up(b).toFixed(1)}`).join("L");
    for (const tick of ticks(bottom, top, 6)) {
      svg.append(make("line", { class: "rule", x1: LEFT, x2: WIDTH - RIGHT, y1: up(tick), y2: up(tick) }));
      svg.append(make("text", { class: "tick", x: LEFT - 9, y: up(tick) + 4, "text-anchor": "end" }, shown(tick)));
    }
    for (const [tick, name] of placeTicks(first, last, isNarrow ? 4 : 9)) {
      svg.append(make("text", { class: "tick", x: across(tick), y: HEIGHT - BOTTOM + 20, "text-anchor": "middle" }, name));
    }
    if (bottom < neutral && top > neutral && !isLevelShown) svg.append(make("line", { class: "zero", x1: LEFT, x2: WIDTH - RIGHT, y1: up(neutral), y2: up(neutral) }));
    if (band) svg.append(make("path", { class: "band", d: path([...x.map((each, k) => [each, band[k][1]]), ...x.map((each, k) => [each, band[k][0]]).reverse()]) + "Z" }));
    svg.append(make("path", { class: "curve", d: path(x.map((each, k) => [each, values[k]])) }));
    svg.append(make("line", { class: "axis", x1: LEFT, x2: WIDTH - RIGHT, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM }));
    svg.append(make("text", { class: "label", x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 8, "text-anchor": "middle" }, study.x_label));
  };

  const p = (value) => value < 0.001 ? "p < 0.001" : `p = ${value.toFixed(3)}`;
  const describe = (curve, level) => {
    const mean = curve.average(), word = curve.averageName, none = curve.isRatio ? "1" : "zero";
    const lines = [`${word[0].toUpperCase()}${word.slice(1)} over the domain: ${shown(mean.at(answers.domain[0]))}`];
    if (!curve.hasBand) return [`${lines[0]}.`, "This method has no band."];
    lines[0] += ` (${Math.round(level * 1000) / 10}% interval ${mean.interval(level).map(shown).join(" to ")}).`;
    if (!curve.isMean) {
      const zero = curve.isZero(level);
      lines.push(`${curve.isRatio ? "A ratio of 1" : "Zero"} everywhere? ${p(zero.pValue)}${zero.intervals.length ? `; the band excludes ${none} on ${zero.intervals.map((each) => `${span(each)} (${each[2] > 0 ? "above" : "below"})`).join(", ")}` : "; the band excludes it nowhere"}.`);
    }
    const constant = curve.isConstant(level), top = curve.extremum(level, 1), low = curve.extremum(level, -1);
    lines.push(`Constant? ${p(constant.pValue)}.`);
    lines.push(`Largest at ${placeName(top.x)} (confidence set ${top.intervals.map(span).join(", ")}); smallest at ${placeName(low.x)} (${low.intervals.map(span).join(", ")}).`);
    return lines;
  };
  let table = [];
  const answer = () => {
    const message = section.querySelector(".message"), says = section.querySelector(".says"), body = section.querySelector("tbody");
    try {
      const level = Number(field("level").value), curve = chosen(), [low, high] = answers.domain;
      const x = Array.from({ length: GRID }, (_, k) => low + (high - low) * k / (GRID - 1)), values = x.map((each) => curve.at(each));
      const band = curve.hasBand ? curve.band(level, x) : null;
      message.textContent = "";
      section.querySelector("figcaption").textContent = curve.name;
      draw(curve, x, values, band, field("what").value === "profile" && !field("slope").checked);
      says.replaceChildren(...describe(curve, level).map((line) => Object.assign(document.createElement("p"), { textContent: line })));
      table = x.map((each, k) => [each, values[k], ...(band ? band[k] : [])]);
      body.replaceChildren(...table.filter((_, k) => k % ((GRID - 1) / (ROWS - 1)) === 0).map((row) => {
        const line = document.createElement("tr");
        row.forEach((value, k) => line.append(Object.assign(document.createElement("td"), { textContent: k === 0 ? placeName(value) : shown(value) })));
        return line;
      }));
      section.dataset.answered = String(Number(section.dataset.answered || 0) + 1);
    } catch (error) {
      message.textContent = error.message;
    }
  };
  const show = () => {
    const what = field("what").value;
    for (const side of form.querySelectorAll("fieldset[data-side]")) side.hidden = !(what === "contrast" || (what === "profile" && side.dataset.side === "one"));
  };
  field("slope").disabled = !answers.curveAt().hasFreeEnds;
  form.addEventListener("input", () => { show(); answer(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  section.querySelector(".save-csv").addEventListener("click", () => {
    const head = ["x", "estimate", "lower", "upper"].slice(0, table[0].length).join(",");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([[head, ...table.map(([x, ...row]) => [origin === null ? x : momentName(x), ...row].join(","))].join("\n") + "\n"], { type: "text/csv" }));
    link.download = "curve.csv";
    link.click();
  });
  show();
  const begin = () => answer();
  if ("IntersectionObserver" in window) {
    const seen = new IntersectionObserver((entries) => { if (entries.some((each) => each.isIntersecting)) { seen.disconnect(); begin(); } }, { rootMargin: "400px" });
    seen.observe(section);
  } else begin();
  addEventListener("beforeprint", () => { if (!table.length) begin(); });
};
{
  const whole = JSON.parse(document.getElementById("dpfda-result").textContent);
  for (const section of document.querySelectorAll(".ask")) {
    dpfdaAsk(section, whole.outcomes ? whole.outcomes[section.closest("[data-outcome]").dataset.outcome] : whole);
  }
}
