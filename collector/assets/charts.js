// Draws each chart from the table that stands below it, so that both say the same.
//
// <figure data-chart="points">: each row has data-x, data-y, data-kind, data-note and data-href.
// <figure data-chart="lines">: each row has data-x, data-values with one number for each line, and
// data-note.
// <figure data-chart="bars">: each row has data-values, one number for each series, data-note, and
// data-x for a time or data-label for a range.
"use strict";

(() => {
  const HEIGHT = 260;
  // A point is meant when the pointer is this near to it, in pixels.
  const NEAR = 18;
  const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
  const KINDS = ["ordinary", "flagged"];

  const drawn = new Map();

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  // Steps of an axis: whole numbers, and lengths of time that people count in.
  const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6];
  const TIMES = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

  const rowsOf = (figure) => [...figure.querySelectorAll("tbody tr")];

  const timeLabel = (seconds, span) => {
    const text = new Date(seconds * 1000).toISOString();
    if (span > 2 * 86400) return text.slice(5, 10);
    return span > 600 ? text.slice(11, 16) : text.slice(11, 19);
  };

  const axis = (figure, which, more) => ({
    stroke: colour("--muted"),
    font: FONT,
    labelFont: FONT,
    labelSize: which === "x" ? 16 : 22,
    labelGap: 2,
    ...(which === "x" ? { size: 26 } : {}),
    label: figure.dataset[`${which}Label`],
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { show: false },
    ...more,
  });

  const base = (figure, scales, axes, series, draw) => ({
    width: Math.max(320, figure.querySelector(".plot").clientWidth),
    height: HEIGHT,
    padding: [12, 24, 0, 0],
    cursor: { show: false },
    legend: { show: false },
    scales,
    axes,
    series: [{}, ...series],
    hooks: { draw: draw ? [draw] : [] },
  });

  // From nought where nothing is below it, with a little room above.
  const room = (u, low, high) => {
    const [from, to] = [Math.min(0, low ?? 0), Math.max(high ?? 0, 1e-6)];
    const margin = (to - from) * 0.06;
    return [from < 0 ? from - margin : 0, to + margin];
  };

  // From the first row to the last, which stand in order, with `least` seconds beside them.
  const around = (rows, least) => {
    const [low, high] = [rows[0].x, rows[rows.length - 1].x];
    const margin = Math.max((high - low) * 0.04, least);
    return [low - margin, high + margin];
  };

  // The sawtooth of a timer: no lag while the client looks, the rest of the period while not.
  const rhythm = (figure) => {
    const { period, looking, phase } = figure.dataset;
    if (!period) return null;
    const [p, d, offset] = [Number(period), Number(looking), Number(phase)];
    return (u) => {
      const { ctx } = u;
      const x = (value) => u.valToPos(value, "x", true);
      const y = (value) => u.valToPos(value, "y", true);
      ctx.save();
      ctx.beginPath();
      ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
      ctx.clip();
      ctx.beginPath();
      ctx.strokeStyle = colour("--muted");
      ctx.lineWidth = devicePixelRatio;
      ctx.setLineDash([5 * devicePixelRatio, 4 * devicePixelRatio]);
      for (let start = offset - p; start < u.scales.x.max; start += p) {
        ctx.moveTo(x(start), y(0));
        ctx.lineTo(x(start + d), y(0));
        ctx.lineTo(x(start + d), y(p - d));
        ctx.lineTo(x(start + p), y(0));
      }
      ctx.stroke();
      ctx.restore();
    };
  };

  const points = (figure) => {
    const rows = rowsOf(figure)
      .map((row) => ({ ...row.dataset, x: Number(row.dataset.x), y: Number(row.dataset.y) }))
      .sort((a, b) => a.x - b.x);
    const isTime = figure.dataset.xTime === "true";
    const series = KINDS.map((kind) => ({
      stroke: colour(kind === "flagged" ? "--alert-strong" : "--client"),
      paths: () => null,
      points: { show: true, size: 7, fill: colour(kind === "flagged" ? "--alert-strong" : "--client") },
    }));
    const values = (u, splits) => {
      const span = u.scales.x.max - u.scales.x.min;
      return splits.map((at) => (isTime ? timeLabel(at, span) : String(Number(at.toPrecision(6)))));
    };
    const range = isTime ? around(rows, 1) : room;
    const options = base(
      figure,
      { x: { time: isTime, range }, y: { range: room } },
      [axis(figure, "x", { values, ...(isTime ? { incrs: TIMES } : {}) }), axis(figure, "y", { size: 62 })],
      series,
      rhythm(figure),
    );
    const columns = KINDS.map((kind) => rows.map((row) => (row.kind === kind ? row.y : null)));
    const place = (u, row) => [u.valToPos(row.x, "x"), u.valToPos(row.y, "y")];
    const nearest = (u, left, top) => {
      let best = null;
      for (const row of rows) {
        const [x, y] = place(u, row);
        const distance = Math.hypot(x - left, y - top);
        if (distance <= NEAR && distance <= (best?.distance ?? NEAR)) best = { row, x, y, distance };
      }
      return best;
    };
    return { options, data: [rows.map((row) => row.x), ...columns], nearest };
  };

  const bars = (figure) => {
    const rows = rowsOf(figure).map((row) => row.dataset);
    const isTime = figure.dataset.xTime === "true";
    const at = rows.map((row, index) => (isTime ? Number(row.x) : index));
    const values = rows.map((row) => row.values.split(" ").map(Number));
    const count = values[0]?.length ?? 0;
    const step = at.length > 1 ? at[1] - at[0] : 1;
    // Each series stands on those before it: the tallest is drawn first, the others over it.
    const order = Array.from({ length: count }, (_, n) => count - 1 - n);
    const height = (row, upTo) => row.slice(0, upTo + 1).reduce((sum, value) => sum + value, 0);
    const classes = [...figure.querySelectorAll(".keys .key")].map((key) => `--${key.classList[1]}`);
    const series = order.map((n) => ({
      fill: colour(classes[n]),
      stroke: colour(classes[n]),
      width: 0,
      points: { show: false },
      paths: uPlot.paths.bars({ size: [0.86, 64], align: isTime ? 1 : 0 }),
    }));
    const labels = (u, splits) => {
      const span = u.scales.x.max - u.scales.x.min;
      return splits.map((value) => (isTime ? timeLabel(value, span) : (rows[value]?.label ?? "")));
    };
    const x = isTime ? { incrs: TIMES } : { splits: () => at };
    const range = isTime
      ? [at[0] ?? 0, (at[at.length - 1] ?? 0) + step]
      : [-0.6, Math.max(0, at.length - 1) + 0.6];
    const options = base(
      figure,
      { x: { time: isTime, range }, y: { range: (u, low, high) => [0, Math.max(1, (high ?? 0) * 1.08)] } },
      [axis(figure, "x", { values: labels, grid: { show: false }, ...x }), axis(figure, "y", { incrs: WHOLE, size: 52 })],
      series,
    );
    const nearest = (u, left) => {
      const value = u.posToVal(left, "x");
      const index = isTime ? Math.floor((value - at[0]) / step) : Math.round(value);
      const row = rows[index];
      if (!row) return null;
      const middle = isTime ? at[index] + step / 2 : index;
      const top = u.valToPos(height(values[index], count - 1), "y");
      return { row, x: u.valToPos(middle, "x"), y: top };
    };
    const columns = order.map((n) => values.map((row) => height(row, n)));
    return { options, data: [at, ...columns], nearest };
  };

  const lines = (figure) => {
    const rows = rowsOf(figure).map((row) => ({ ...row.dataset, x: Number(row.dataset.x) }));
    const values = rows.map((row) => row.values.split(" ").map(Number));
    const count = values[0]?.length ?? 0;
    const order = Array.from({ length: count }, (_, n) => n);
    const series = order.map((n) => ({
      stroke: colour(`--key-${n + 1}`),
      width: 1.5,
      points: { show: true, size: 5, fill: colour(`--key-${n + 1}`) },
    }));
    const labels = (u, splits) => {
      const span = u.scales.x.max - u.scales.x.min;
      return splits.map((at) => timeLabel(at, span));
    };
    const options = base(
      figure,
      { x: { time: true, range: around(rows, 60) }, y: { range: room } },
      [axis(figure, "x", { values: labels, incrs: TIMES }), axis(figure, "y", { size: 62 })],
      series,
    );
    const nearest = (u, left) => {
      let best = null;
      rows.forEach((row, index) => {
        const x = u.valToPos(row.x, "x");
        const distance = Math.abs(x - left);
        if (best !== null && distance >= best.distance) return;
        best = { row, x, y: u.valToPos(Math.max(...values[index]), "y"), distance };
      });
      return best;
    };
    const columns = order.map((n) => values.map((row) => row[n]));
    return { options, data: [rows.map((row) => row.x), ...columns], nearest };
  };

  // What the pointer is on, in words; a click goes to the exchange it stands for.
  const explain = (u, nearest) => {
    const tip = document.createElement("div");
    tip.className = "tip";
    tip.hidden = true;
    u.over.append(tip);
    let found = null;
    u.over.addEventListener("mousemove", (event) => {
      const box = u.over.getBoundingClientRect();
      found = nearest(u, event.clientX - box.left, event.clientY - box.top);
      tip.hidden = found === null;
      u.over.classList.toggle("leads", Boolean(found?.row.href));
      if (found === null) return;
      tip.textContent = found.row.note;
      const left = Math.min(Math.max(found.x - tip.offsetWidth / 2, 0), box.width - tip.offsetWidth);
      const above = found.y - tip.offsetHeight - 10;
      tip.style.left = `${left}px`;
      tip.style.top = `${above < 0 ? found.y + 10 : above}px`;
    });
    u.over.addEventListener("mouseleave", () => {
      tip.hidden = true;
    });
    u.over.addEventListener("click", () => {
      if (found?.row.href) location.assign(found.row.href);
    });
  };

  const draw = (figure) => {
    drawn.get(figure)?.destroy();
    drawn.delete(figure);
    const plot = figure.querySelector(".plot");
    if (!plot || rowsOf(figure).length === 0) return;
    const chart = { bars, lines, points }[figure.dataset.chart](figure);
    const u = new uPlot(chart.options, chart.data, plot);
    explain(u, chart.nearest);
    drawn.set(figure, u);
  };

  const drawAll = () => {
    for (const figure of drawn.keys()) {
      if (figure.isConnected) continue;
      drawn.get(figure).destroy();
      drawn.delete(figure);
    }
    document.querySelectorAll("figure[data-chart]").forEach(draw);
  };

  let resized = null;
  addEventListener("resize", () => {
    clearTimeout(resized);
    resized = setTimeout(drawAll, 150);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  document.addEventListener("skewtap:changed", drawAll);
  drawAll();
})();
