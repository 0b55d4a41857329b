"use strict";
// Draws each chart from the table below it: the first column is x, each further one a series.
(() => {
  const colours = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b58900", "#56b4e9", "#7b61c9", "#8a8a8a", "#e6739f", "#4d8b31"];
  const number = (cell) => (cell.dataset.v === "" ? null : Number(cell.dataset.v));
  // As the tables write numbers: thousands apart.
  const thousands = (value) => value.toLocaleString("en").replaceAll(",", "\u202f");
  const bound = (name) => name === "ε" || name === "limit of the host";
  const charts = [];

  function read(figure) {
    const table = figure.querySelector("table");
    const heads = [...table.tHead.rows[0].cells];
    const all = heads.map((cell) => cell.textContent);
    const rows = [...table.tBodies[0].rows].map((row) => [...row.cells]);
    const texts = new Map(rows.map((cells) => [number(cells[0]), cells[0].textContent]));
    const values = all.map((_, i) => rows.map((cells) => number(cells[i])));
    // Numbers of nodes are written, and not drawn as a series.
    const counted = heads.map((cell) => "count" in cell.dataset);
    const drawn = (_, i) => !counted[i];
    const counts = values.filter((_, i) => counted[i]);
    const ends = rows.map((cells) => Number(cells[0].dataset.to ?? cells[0].dataset.v));
    return { names: all.filter(drawn), texts, columns: values.filter(drawn), counts, ends, labels: rows.map((cells) => cells[0].textContent) };
  }

  function width(figure) {
    return Math.max(240, figure.querySelector(".plot").clientWidth);
  }

  // Draws a bar over each range, with its number of nodes, or, of several series, a level over each range.
  function drawRanges(u, columns, edges, alone, counts, ink) {
    const c = u.ctx, dense = devicePixelRatio;
    c.save();
    columns.slice(1).forEach((values, s) => {
      const colour = colours[s % colours.length];
      if (!u.series[s + 1].show) return;
      values.forEach((value, i) => {
        if (value === null) return;
        const [from, to] = edges[i].map((x) => u.valToPos(x, "x", true)), top = u.valToPos(value, "y", true), bottom = u.bbox.top + u.bbox.height;
        const gap = Math.min(dense, (to - from) / 8);
        if (alone) {
          c.fillStyle = colour + "99";
          c.fillRect(from + gap, top, to - from - 2 * gap, bottom - top);
          c.fillStyle = colour;
          c.fillRect(from + gap, top - dense, to - from - 2 * gap, 2 * dense);
          const text = counts ? thousands(counts[i]) : "";
          c.font = `${11 * dense}px system-ui, sans-serif`;
          if (text && c.measureText(text).width < to - from) {
            c.fillStyle = ink;
            c.textAlign = "center";
            c.textBaseline = "bottom";
            c.fillText(text, (from + to) / 2, Math.max(top - 2 * dense, u.bbox.top + 12 * dense));
          }
        } else {
          c.fillStyle = colour;
          c.fillRect(from + gap, top - 1.5 * dense, to - from - 2 * gap, 3 * dense);
        }
      });
    });
    c.restore();
  }

  function draw(figure) {
    const { names, texts, columns, counts, ends, labels } = read(figure);
    const { kind, x, y } = figure.dataset;
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--text").trim(), rule = style.getPropertyValue("--rule").trim();
    // A logarithmic axis has no 0: what lies there is drawn at one half.
    const log = "log" in figure.dataset;
    const at = columns[0].map((value) => (log && value <= 0 ? 0.5 : value));
    const shown = new Map(at.map((value, i) => [value, texts.get(columns[0][i])]));
    const ranges = kind === "ranges", alone = ranges && columns.length === 2;
    // A range of whole numbers ends before the next one; that of 0 on a logarithmic axis before 1.
    const edges = at.map((value, i) => [value, ends[i] + 1]);
    const middle = ([from, to]) => (log ? Math.sqrt(from * to) : (from + to) / 2);
    const named = new Map(edges.map((edge, i) => [middle(edge), labels[i]]));
    const apart = edges.every((edge, i) => i === 0 || edge[0] >= edges[i - 1][1]);
    const paths = { bars: uPlot.paths.bars({ size: [0.9, 60] }), steps: uPlot.paths.stepped({ align: 1 }), lines: uPlot.paths.linear(), ranges: () => null }[kind];
    // Names of ticks that would touch each other are left out, the last one is not.
    const ticksOf = (u, ticks) => {
      const texts = ticks.map((tick) => (named.has(tick) && ranges && apart ? named.get(tick) : tick === 0.5 && log ? "0" : tick !== null && Number.isInteger(tick) ? thousands(tick) : ""));
      if (ranges && apart) { // ranges are not equally wide: a name that would touch the next one is left out
        let free = Infinity;
        return texts.map((text, i) => [text, u.valToPos(ticks[i], "x")]).reverse().map(([text, x]) => {
          const half = text.length * 3.5 + 2;
          if (x + half > free) return "";
          free = x - half;
          return text;
        }).reverse();
      }
      const room = u.bbox.width / devicePixelRatio / Math.max(ticks.length - 1, 1);
      const every = Math.ceil((Math.max(...texts.map((text) => text.length)) * 7 + 6) / room);
      return texts.map((text, i) => ((texts.length - 1 - i) % every ? "" : text));
    };
    const axis = { stroke: ink, font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif", labelSize: 20, grid: { stroke: rule, width: 1 }, ticks: { stroke: rule, width: 1 } };
    const plot = new uPlot({
      width: width(figure), height: 260,
      hooks: ranges ? { draw: [(u) => drawRanges(u, columns, edges, alone, counts[0], ink)] } : {},
      cursor: { drag: { x: false, y: false } },
      legend: { show: true },
      scales: { x: { time: false, distr: log ? 3 : 1, log: 2, range: (_, from, to) => (log ? (ranges ? [Math.min(...at), Math.max(...ends) + 1] : [from / 2, to * 2]) : kind === "bars" ? [from - 0.5, to + 0.5] : ranges ? [from, Math.max(...ends) + 1] : from === to ? [from - 1, to + 1] : [from, to]) }, ...("zero" in figure.dataset ? { y: { range: (_, _from, to) => uPlot.rangeNum(0, to, { min: { pad: 0, hard: 0 }, max: { pad: 0.1 } }) } } : {}) },
      axes: [
        { ...axis, label: x, filter: (_, splits) => splits, values: ticksOf, ...(ranges && apart ? { splits: () => [...named.keys()] } : {}) },
        { ...axis, label: y, size: 56 },
      ],
      series: [
        { label: x, value: (_, value) => (value === null ? "–" : shown.get(value) ?? value) },
        ...names.slice(1).map((name, i) => ({
          label: name, paths, width: 2, spanGaps: true, stroke: bound(name) ? ink : colours[i % colours.length],
          dash: bound(name) || i >= colours.length ? [6, 4] : undefined,
          fill: kind === "bars" || alone ? colours[i % colours.length] + "99" : undefined,
          points: { show: kind === "lines" && columns[0].length <= 40, size: 5 },
          value: (_, value) => (value === null ? "–" : String(Number(value.toPrecision(4)))),
        })),
      ],
    }, [at, ...columns.slice(1)], figure.querySelector(".plot"));
    return plot;
  }

  function drawAll() {
    for (const { plot } of charts.splice(0)) plot.destroy();
    for (const figure of document.querySelectorAll("figure.chart")) charts.push({ figure, plot: draw(figure) });
  }

  drawAll();
  // What is folded has no width until it is opened.
  for (const folded of document.querySelectorAll("details.hops")) folded.addEventListener("toggle", () => charts.forEach(({ figure, plot }) => { if (folded.contains(figure)) plot.setSize({ width: width(figure), height: 260 }); }));
  addEventListener("resize", () => charts.forEach(({ figure, plot }) => plot.setSize({ width: width(figure), height: 260 })));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  // Paper is white, shows all numbers, and charts as wide as its columns.
  addEventListener("beforeprint", () => {
    document.documentElement.classList.add("paper");
    drawAll();
    document.querySelectorAll("details").forEach((d) => { if (!d.closest("figure")) d.open = true; });
    charts.forEach(({ plot }) => plot.setSize({ width: 330, height: 220 }));
  });
  addEventListener("afterprint", () => {
    document.documentElement.classList.remove("paper");
    drawAll();
  });
})();
