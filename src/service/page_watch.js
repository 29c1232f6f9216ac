// The curves of runs as they grow, and what decoders say at their checkpoints: `GET /watch` sends the lines of the runs'
// logs.  Charts have the form of a run's report, whose chart.css and chart.js style them and show their values.
"use strict";

const runs = new Map(); // by name
const followed = { hasBegun: false, isDrawn: true };
const colors = 8;

// ---- logs ----

function clearRuns() {
    server.watched.forEach((name, i) => {
        const isShown = runs.get(name)?.isShown ?? true;
        runs.set(name, { name, color: `r${i % colors}`, isShown, steps: [], evaluations: [], hasEnded: false, time: 0 });
    });
    byId("samples").replaceChildren();
}

const stepOf = (event) => event.global_step ?? event.step;

// Steps from one on are repeated, or were of another beginning.
function dropFrom(rows, step) {
    while (rows.length > 0 && stepOf(rows[rows.length - 1]) >= step) {
        rows.pop();
    }
}

// As `kiln report` reads a log: later lines win.
function take(run, event) {
    run.time = event.time || run.time;
    if (event.event === "log") {
        run.steps = [];
        run.evaluations = [];
    } else if (event.event === "start" && event.last_step > event.step) {
        dropFrom(run.steps, stepOf(event) + 1);
        dropFrom(run.evaluations, stepOf(event) + 1);
        run.hasEnded = false;
    } else if (event.event === "step") {
        dropFrom(run.steps, stepOf(event));
        dropFrom(run.evaluations, stepOf(event));
        run.steps.push(event);
    } else if (event.event === "evaluation") {
        dropFrom(run.evaluations, stepOf(event));
        run.evaluations.push({ ...event, loss: totalOf(event) });
    } else if (event.event === "end") {
        run.hasEnded = true;
    } else if (event.event === "sample") {
        addSample(run, event);
    }
}

const isMeasure = (key) => /(_loss|accuracy)$/.test(key) && !/^(step|final|unigram|ngram)_/.test(key);

function totalOf(evaluation) {
    const losses = Object.keys(evaluation).filter((k) => isMeasure(k) && k.endsWith("_loss"));
    return losses.length > 0 ? losses.reduce((sum, k) => sum + evaluation[k], 0) : evaluation.loss;
}

// ---- charts ----

const width = 600, height = 200;
const numbers = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const kinds = { mlm: "Masked words", nsp: "Next sentence", lm: "Next token", span: "Answers", "": "Labels" };

// The charts that these runs have values for: {key, title, unit}.
function formsOf(shown) {
    const keys = new Set(shown.flatMap((r) => [r.steps.at(-1), r.evaluations.at(-1)]).flatMap((e) => Object.keys(e || {})));
    const measures = [...keys].filter(isMeasure).sort((a, b) => b.endsWith("_loss") - a.endsWith("_loss"));
    const isTotal = measures.filter((k) => k.endsWith("_loss")).length !== 1;
    return [
        ...(isTotal ? [{ key: "loss", title: "Loss", unit: "total, in nats" }] : []),
        ...measures.map((key) => {
            const [, kind, what] = /^(.*?)_?(loss|accuracy)$/.exec(key);
            return { key, title: `${kinds[kind] || kind}: ${what}`, unit: what === "loss" ? "nats" : "fraction correct" };
        }),
        { key: "learning_rate", title: "Learning rate", unit: "", fromZero: true },
        { key: "grad_norm", title: "Gradient norm", unit: "before clipping", fromZero: true, logIfWide: true },
        { key: "tokens_per_second", title: "Throughput", unit: "tokens/s", fromZero: true },
    ];
}

// Points {step, value} of a column of rows, with the mean of those that fall into one place of the chart.
function pointsOf(rows, key, lastStep) {
    const points = [];
    for (const row of rows) {
        if (Number.isFinite(row[key])) {
            const step = stepOf(row), place = Math.floor((step / lastStep) * (width - 1)), last = points.at(-1);
            if (last?.place === place) {
                last.n++;
                last.step += (step - last.step) / last.n;
                last.value += (row[key] - last.value) / last.n;
            } else {
                points.push({ place, step, value: row[key], n: 1 });
            }
        }
    }
    return points;
}

function curvesIn(shown, key, lastStep) {
    const styles = [
        ["training", "line", "steps", key], ["held-out", "heldout", "evaluations", key],
        ["word frequencies", "floor", "evaluations", `unigram_${key}`], ["counts of n-grams", "counts", "evaluations", `ngram_${key}`],
    ];
    return styles.flatMap(([what, style, rows, column]) => shown.map((run) => ({ run, what, style, points: pointsOf(run[rows], column, lastStep) })))
        .filter((c) => c.points.length > 0);
}

// A distance of ticks, 1, 2 or 5 times a power of ten, of which about n fit.
function tickOf(range, n) {
    const power = 10 ** Math.floor(Math.log10(range / n)), times = range / n / power;
    return power * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
}

function axisOf(values, form) {
    const low = values.reduce((a, b) => Math.min(a, b)), high = values.reduce((a, b) => Math.max(a, b));
    if (form.logIfWide && low > 0 && high / low > 100) {
        const from = Math.floor(Math.log10(low)), to = Math.ceil(Math.log10(high));
        return { from, to, tick: Math.ceil((to - from) / 5), isLog: true };
    }
    let from = form.fromZero && low > 0 ? 0 : low, to = high;
    if (to - from < 1e-12 * Math.max(Math.abs(from), Math.abs(to)) || to === from) {
        const room = from === 0 ? 1 : 0.1 * Math.abs(from);
        from -= low >= 0 && from - room < 0 ? from : room;
        to += room;
    }
    const tick = tickOf(to - from, 4);
    return { from: tick * Math.floor(from / tick + 1e-9), to: tick * Math.ceil(to / tick - 1e-9), tick, isLog: false };
}

function svgElement(name, attributes) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    Object.entries(attributes).forEach(([k, v]) => made.setAttribute(k, v));
    return made;
}

// The label of a tick, at a fraction of the plot from the left or the top.
function tickLabel(side, fraction, value) {
    const label = make("span", { class: side }, numbers.format(Number(value.toPrecision(6))));
    label.style[side === "x" ? "left" : "top"] = `${100 * fraction}%`;
    return label;
}

// Fills a figure with a chart; returns whether there is something to draw.
function draw(figure, form, shown, lastStep) {
    const curves = curvesIn(shown, form.key, lastStep), svg = figure.querySelector("svg"), plot = svg.parentElement;
    figure.hidden = curves.length === 0;
    if (figure.hidden) {
        return;
    }
    const axis = axisOf(curves.flatMap((c) => c.points.map((p) => p.value)), form);
    const x = (step) => (width * step) / lastStep;
    const y = (value) => (height * (axis.to - (axis.isLog ? Math.log10(value) : value))) / (axis.to - axis.from);
    let grid = "";
    plot.querySelectorAll("span").forEach((s) => s.remove());
    for (let i = 0; axis.from + i * axis.tick <= axis.to + axis.tick / 2; i++) {
        const v = axis.from + i * axis.tick, place = (height * (axis.to - v)) / (axis.to - axis.from);
        grid += `M0 ${place}H${width}`;
        plot.append(tickLabel("y", place / height, axis.isLog ? 10 ** v : v));
    }
    const tick = Math.max(1, tickOf(lastStep, 4));
    for (let step = 0; step <= lastStep; step += tick) {
        grid += `M${x(step)} 0V${height}`;
        plot.append(tickLabel("x", step / lastStep, step));
    }
    svg.replaceChildren(svgElement("path", { class: "grid", d: grid }));
    Object.assign(svg.dataset, { last: lastStep, from: axis.from, to: axis.to, log: axis.isLog ? 1 : 0 });
    for (const { run, what, style, points } of curves) {
        const places = points.map((p) => `${x(p.step).toFixed(1)} ${y(p.value).toFixed(1)}`);
        svg.append(svgElement("path", { class: `${run.color} ${style}`, "data-run": run.name, "data-what": what, d: `M ${places.join(" ")}` }));
        if (points.length === 1 || (style === "heldout" && points.length < 60)) {
            svg.append(svgElement("path", { class: `${run.color} dots`, d: places.map((p) => `M${p}h0`).join("") }));
        }
    }
}

function figureOf(form) {
    const id = `chart-${form.key}`, known = byId(id);
    if (known) {
        return known;
    }
    const svg = svgElement("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": form.title });
    const plot = make("div", { class: "plot" }), figure = make("figure", { id }, make("figcaption", {}, `${form.title} `, make("small", {}, form.unit)), plot);
    plot.append(svg);
    showValues(plot);
    return figure;
}

// ---- the table of runs, and their texts ----

function rowOf(run) {
    const box = make("input", { type: "checkbox" }), label = make("label", { class: run.color }, box, make("i", { class: "swatch" }), run.name);
    box.checked = run.isShown;
    box.addEventListener("change", () => {
        run.isShown = box.checked;
        redraw();
    });
    return make("tr", {}, make("th", { scope: "row" }, label), ...["step", "loss", "heldout", "rate", "time"].map((name) => make("td", { class: name })));
}

function fillTable() {
    const table = byId("runs").querySelector("table"), format = (v) => (Number.isFinite(v) ? String(Number(v.toPrecision(4))) : "");
    [...runs.values()].forEach((run, i) => {
        const step = run.steps.at(-1), evaluation = run.evaluations.at(-1), row = table.rows[i + 1];
        const time = run.time ? new Date(1000 * run.time).toLocaleTimeString() : "";
        const cells = [String(step ? stepOf(step) : ""), format(step?.loss), format(evaluation?.loss), step ? numbers.format(step.tokens_per_second || 0) : "",
            run.hasEnded ? `ended ${time}` : time];
        cells.forEach((text, k) => { row.cells[k + 1].textContent = text; });
    });
}

function makeTable() {
    const names = ["Run", "Step", "Loss", "Held-out", "Tokens/s", "Last line"];
    const head = make("tr", {}, ...names.map((n) => make("th", { scope: "col" }, n)));
    byId("runs").replaceChildren(make("table", {}, head, ...[...runs.values()].map(rowOf)));
    byId("runs").tabIndex = 0;
}

// The newest first.
function addSample(run, event) {
    const list = byId("samples"), most = 50;
    const text = make("p", { class: "text" }, make("span", { class: "prompt" }, event.prompt), event.text);
    if (list.children.length === 0) {
        list.append(make("h2", {}, "What the model says at each checkpoint"));
    }
    list.firstChild.after(make("div", { class: "sample" }, make("h3", {}, `${run.name}, step ${event.step}`), text));
    if (list.children.length > most) {
        list.lastChild.remove();
    }
}

// ---- drawing and following ----

function redraw() {
    const shown = [...runs.values()].filter((r) => r.isShown), rows = shown.flatMap((r) => [r.steps.at(-1), r.evaluations.at(-1)]);
    const lastStep = Math.max(1, ...rows.filter(Boolean).map(stepOf));
    const figures = formsOf(shown).map((form) => [figureOf(form), form]);
    byId("curves").hidden = rows.every((r) => !r);
    if (figures.some(([f]) => !f.isConnected) || figures.length !== byId("charts").children.length) {
        byId("charts").replaceChildren(...figures.map(([f]) => f));
    }
    figures.forEach(([figure, form]) => draw(figure, form, shown, lastStep));
    fillTable();
    followed.isDrawn = true;
}

function redrawSoon() {
    if (followed.isDrawn && chosen?.id === "watch") {
        followed.isDrawn = false;
        setTimeout(redraw, 200);
    }
}

async function follow() {
    const said = byId("follows");
    said.textContent ||= "Asking for the runs.";
    followed.hasBegun = true;
    try {
        const response = await send("watch");
        clearRuns();
        makeTable();
        redrawSoon();
        said.textContent = `Following ${count(runs.size, "run")}. A curve grows when its run writes a line of its log.`;
        for await (const { event, data } of eventsOf(response)) {
            take(runs.get(event), JSON.parse(data));
            redrawSoon();
        }
        said.textContent = "The server ended the stream. This page asks again.";
    } catch (error) {
        said.textContent = `The runs cannot be followed: ${error.message}. This page asks again.`;
    }
    setTimeout(follow, 2000);
}

tasks.watch = {
    shown: () => {
        if (followed.hasBegun) {
            redrawSoon();
        } else {
            follow();
        }
    },
};

for (const [style, text] of [["line", "training"], ["heldout", "held-out"], ["floor", "word frequencies"], ["counts", "counts of n-grams"]]) {
    const sample = svgElement("svg", { viewBox: "0 0 30 14", "aria-hidden": "true" });
    sample.append(svgElement("path", { class: style, d: "M0 7H30" }));
    const item = make("span", {});
    item.append(sample, text);
    byId("curves").append(item);
}
