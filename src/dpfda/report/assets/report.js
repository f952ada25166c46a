"use strict";
(() => {
  const result = JSON.parse(document.getElementById("dpfda-result").textContent);
  const resultAt = (node) => result.outcomes ? result.outcomes[node.closest("[data-outcome]").dataset.outcome] : result;

  const shown = (value) => {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-4 || size >= 1e7)) return value.toExponential(3);
    return value.toLocaleString("en-US", { maximumSignificantDigits: 4 });
  };
  const place = (x, origin) => origin === null ? shown(x)
    : new Date(Date.parse(origin + "T00:00:00Z") + Math.round(x) * 864e5).toISOString().slice(0, 10);

  for (const svg of document.querySelectorAll("svg.chart[data-function]")) {
    const { grid, study, functions } = resultAt(svg), own = functions[Number(svg.dataset.function)];
    const [left, right, top, bottom, low, high] = ["left", "right", "top", "bottom", "low", "high"].map((k) => Number(svg.dataset[k]));
    const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    const pointer = svg.querySelector(".pointer"), cross = pointer.querySelector(".cross"), dot = pointer.querySelector(".dot");
    const tip = svg.parentElement.querySelector(".tip");
    let current = -1;

    const point = (index) => {
      current = Math.max(0, Math.min(grid.length - 1, index));
      const x = left + (current / (grid.length - 1)) * (width - left - right);
      const y = height - bottom - (own.values[current] - low) / (high - low) * (height - top - bottom);
      cross.setAttribute("x1", x); cross.setAttribute("x2", x);
      dot.setAttribute("cx", x); dot.setAttribute("cy", y);
      pointer.setAttribute("visibility", "visible");
      const box = svg.getBoundingClientRect(), frame = svg.parentElement.getBoundingClientRect(), scale = box.width / width;
      tip.textContent = "";
      const strong = document.createElement("b");
      strong.textContent = shown(own.values[current]);
      tip.append(`${place(grid[current], study.x_origin)}:  `, strong);
      if (own.low !== null) tip.append(document.createElement("br"), `band ${shown(own.low[current])} to ${shown(own.high[current])}`);
      const half = tip.offsetWidth / 2;
      tip.style.left = `${Math.max(half, Math.min(box.width - half, x * scale + box.left - frame.left))}px`;
      tip.style.top = `${Math.max(56, y * scale + box.top - frame.top)}px`;
      tip.classList.add("on");
    };
    const leave = () => { pointer.setAttribute("visibility", "hidden"); tip.classList.remove("on"); current = -1; };

    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const share = ((event.clientX - box.left) / box.width * width - left) / (width - left - right);
      if (share < -0.03 || share > 1.03) leave(); else point(Math.round(share * (grid.length - 1)));
    });
    svg.addEventListener("pointerleave", leave);
    svg.addEventListener("blur", leave);
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1, PageUp: 10, PageDown: -10 }[event.key];
      if (step === undefined) return;
      event.preventDefault();
      point(current < 0 ? Math.floor(grid.length / 2) : current + step);
    });
  }

  document.getElementById("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });
  for (const button of document.querySelectorAll("button[data-copy]")) {
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
      button.textContent = "Copied";
    });
  }
  const tables = [...document.querySelectorAll("details.values")];  // on paper nobody can point at a curve
  let opened = [];
  addEventListener("beforeprint", () => { opened = tables.filter((each) => each.open); for (const each of tables) each.open = true; });
  addEventListener("afterprint", () => { for (const each of tables) each.open = opened.includes(each); });
  document.getElementById("save").addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([JSON.stringify(result, null, 1)], { type: "application/json" }));
    link.download = "result.json";
    link.click();
  });
})();
