// What each tab asks and how it shows the answer: tasks.ID has request(values, model), which is {path, body} with how a
// program of OpenAI's client reads the reply, and show(run), which returns what was done, and more to be said.
"use strict";

// Offsets of the answers count characters as code points.
const characters = (text) => [...text];

const percent = (p) => `${(100 * p).toFixed(p < 0.01 ? 2 : 1)} %`;
const count = (n, one, many = `${one}s`) => `${n} ${n === 1 ? one : many}`;

// A line with a bar as long as its probability; with `pressed`, the line is a button.
function barOf(label, p, color, pressed) {
    const fill = make("i"), children = [make("span", {}, label), make("span", { class: "bar" }, fill), make("span", { class: "number" }, percent(p))];
    fill.style.width = `${100 * Math.min(Math.max(p, 0), 1)}%`;
    if (!pressed) {
        return make("li", { class: color }, ...children);
    }
    const button = make("button", { type: "button", class: color }, ...children);
    button.addEventListener("click", pressed);
    return make("li", {}, button);
}

// ---- generate ----

tasks.generate = {
    request: (v, model) => {
        const body = {
            model, prompt: v.prompt, max_tokens: v.max_tokens, temperature: v.temperature, top_p: v.top_p,
            frequency_penalty: v.frequency_penalty, stream: true, stream_options: { include_usage: true },
        };
        if (v.seed !== null) {
            body.seed = v.seed;
        }
        if (v.stop !== "") {
            body.stop = [v.stop];
        }
        return {
            path: "v1/completions", body, client: "completions",
            reads: 'for event in reply:\n    for choice in event.choices:\n        print(choice.text, end="", flush=True)',
        };
    },
    async show({ result, values, response, began }) {
        const text = make("span");
        const ends = { length: "as long as was asked for", stop: "at its end" };
        let ended = "", tokens = 0;
        result.append(make("p", { class: "text" }, make("span", { class: "prompt" }, values.prompt), text));
        for await (const { data } of eventsOf(response)) {
            const event = data === "[DONE]" ? {} : JSON.parse(data);
            if (event.error) {
                throw new Error(messageOf(event, 500));
            }
            text.append(event.choices?.[0]?.text || "");
            ended = event.choices?.[0]?.finish_reason || ended;
            tokens = event.usage?.completion_tokens || tokens;
        }
        if (ended === "") {
            throw new Error("the server broke the answer off");
        }
        const rate = (1000 * tokens) / (performance.now() - began);
        return [count(tokens, "token"), `, ${rate < 10 ? rate.toFixed(1) : Math.round(rate)} a second; the text is ${ends[ended] || ended}`];
    },
};

// ---- ask ----

// The text with the places marked, the likeliest first; a place that meets a likelier one is not marked.
function markPlaces(text, places) {
    const parts = [], marks = new Map();
    let at = 0;
    const free = places.filter((p, i) => !places.slice(0, i).some((o) => p.start < o.end && o.start < p.end));
    for (const place of [...free].sort((a, b) => a.start - b.start)) {
        const mark = make("mark", { tabindex: "-1" }, text.slice(place.start, place.end).join(""));
        parts.push(text.slice(at, place.start).join(""), mark);
        marks.set(place, mark);
        at = place.end;
    }
    return { parts: [...parts, text.slice(at).join("")], marks };
}

function showMark(mark, result) {
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    result.querySelectorAll(".chosen").forEach((m) => m.classList.remove("chosen"));
    mark.classList.add("chosen");
    mark.scrollIntoView({ block: "center", behavior: calm ? "auto" : "smooth" });
    mark.focus({ preventScroll: true });
}

tasks.ask = {
    request: (v, model) => ({
        path: modelPath(model),
        body: {
            inputs: { question: v.question, context: v.context },
            parameters: { top_k: v.top_k, max_answer_len: v.max_answer_len, handle_impossible_answer: v.handle_impossible_answer },
        },
    }),
    async show({ result, values, response }) {
        const answers = [await response.json()].flat(), text = characters(values.context);
        const { parts, marks } = markPlaces(text, answers.filter((a) => a.end > a.start));
        const over = (a) => [...marks.keys()].find((p) => a.start < p.end && p.start < a.end);
        const lines = answers.map((a) => {
            const place = over(a);
            return barOf(a.answer || "no answer", a.score, "r0", place && (() => showMark(marks.get(place), result)));
        });
        const list = make("ul", { class: "bars" }, ...lines);
        list.querySelectorAll("li, button").forEach((e) => e.classList.add("answer"));
        result.append(list, make("p", { class: "text place", tabindex: "0", role: "group", "aria-label": "The text, with the answers marked" }, ...parts));
        return [count(answers.length, "answer"), marks.size > 0 ? "; press one to go to its place" : ""];
    },
};

// ---- fill ----

const maskOf = (model) => server.models.find((m) => m.id === model)?.mask_token || "[MASK]";

function insertMask(panel) {
    const field = panel.querySelector("textarea");
    field.focus();
    field.setRangeText(maskOf(byId("model").value), field.selectionStart, field.selectionEnd, "end");
    field.dispatchEvent(new Event("input", { bubbles: true }));
}

// Puts a word in the place of gap `at`.
function fillGap(panel, mask, at, word) {
    const field = panel.querySelector("textarea"), parts = field.value.split(mask);
    if (at + 1 < parts.length) {
        field.value = `${parts.slice(0, at + 1).join(mask)}${word}${parts.slice(at + 1).join(mask)}`;
        field.dispatchEvent(new Event("input", { bubbles: true }));
        say(panel, `“${word}” is in the text.`);
    }
}

const endOf = (text) => (text.length > 24 ? `…${text.slice(-24)}` : text);
const beginOf = (text) => (text.length > 24 ? `${text.slice(0, 24)}…` : text);

tasks.fill = {
    shown: (panel) => { panel.querySelector(".mask code").textContent = maskOf(byId("model").value); },
    request: (v, model) => ({ path: modelPath(model), body: { inputs: v.text, parameters: { top_k: v.top_k } } }),
    async show({ panel, result, values, model, response }) {
        const reply = await response.json(), gaps = Array.isArray(reply[0]) ? reply : [reply];
        const parts = values.text.split(maskOf(model.id));
        gaps.forEach((words, i) => {
            const around = `${endOf(parts[i] || "")}___${beginOf(parts[i + 1] || "")}`;
            const lines = words.map((w) => barOf(w.token_str, w.score, "r0", () => fillGap(panel, maskOf(model.id), i, w.token_str)));
            result.append(make("h2", {}, gaps.length > 1 ? `Gap ${i + 1}: ` : "", around), make("ul", { class: "bars" }, ...lines));
        });
        return [count(gaps.length, "gap"), "; press a word to put it into the text"];
    },
};
panels.find((p) => p.id === "fill").querySelector(".mask").addEventListener("click", (event) => insertMask(event.target.closest("section")));

// ---- compare ----

const linesOf = (text) => text.split("\n").map((t) => t.trim()).filter((t) => t !== "");

function cosinesOf(vectors) {
    const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
    const lengths = vectors.map((v) => Math.sqrt(dot(v, v)) || 1);
    return vectors.map((a, i) => vectors.map((b, k) => dot(a, b) / (lengths[i] * lengths[k])));
}

tasks.embed = {
    request: (v, model) => ({
        path: "v1/embeddings", body: { model, input: linesOf(v.texts) }, client: "embeddings",
        reads: "vectors = [item.embedding for item in reply.data]\nprint(len(vectors), len(vectors[0]))",
    }),
    async show({ result, values, response }) {
        const texts = linesOf(values.texts), reply = await response.json();
        const cosines = cosinesOf(reply.data.map((d) => d.embedding));
        const nearest = cosines.map((row, i) => row.reduce((best, c, k) => (k !== i && (best < 0 || c > row[best]) ? k : best), -1));
        const head = make("tr", {}, make("td"), ...texts.map((t, i) => make("th", { scope: "col", title: t }, `${i + 1}`)));
        const rows = cosines.map((row, i) => make("tr", {}, make("th", { scope: "row", title: texts[i] }, `${i + 1} ${texts[i]}`), ...row.map((c, k) => {
            const cell = make("td", k === nearest[i] ? { class: "nearest" } : {}, c.toFixed(3));
            cell.style.setProperty("--shade", Math.max(c, 0));
            return cell;
        })));
        result.append(make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Cosines of the texts" }, make("table", {}, head, ...rows)));
        if (texts.length > 1) {
            const near = texts.map((t, i) => make("li", {}, `${t} — ${texts[nearest[i]]} (${cosines[i][nearest[i]].toFixed(3)})`));
            result.append(make("h2", {}, "The nearest of each, underlined above"), make("ol", {}, ...near));
        }
        return [count(texts.length, "text"), `; each became ${reply.data[0].embedding.length} numbers`];
    },
};

// ---- classify ----

tasks.classify = {
    request: (v, model) => {
        const labels = v.labels.split(",").map((t) => t.trim()).filter((t) => t !== "");
        const inputs = v.pair !== "" ? { text: v.text, text_pair: v.pair } : v.text;
        const body = labels.length > 0 ? { inputs: v.text, parameters: { candidate_labels: labels } } : { inputs, parameters: { top_k: 20 } };
        return { path: modelPath(model), body };
    },
    async show({ result, response }) {
        const labels = (await response.json()).flat();
        result.append(make("ul", { class: "bars" }, ...labels.map((l) => barOf(l.label, l.score, "r0"))));
        return [count(labels.length, "label"), `; the likeliest is ${labels[0].label}`];
    },
};

// ---- tag ----

tasks.tag = {
    request: (v, model) => ({ path: modelPath(model), body: { inputs: v.text, parameters: { aggregation_strategy: "simple" } } }),
    async show({ result, values, response }) {
        const entities = [await response.json()].flat(), text = characters(values.text);
        const names = [...new Set(entities.map((e) => e.entity_group))].sort();
        const colorOf = (name) => `r${names.indexOf(name) % 8}`;
        const parts = [];
        let at = 0;
        for (const e of entities) {
            const span = make("span", { class: `tagged ${colorOf(e.entity_group)}`, title: percent(e.score) }, text.slice(e.start, e.end).join(""), make("small", {}, e.entity_group));
            parts.push(text.slice(at, e.start).join(""), span);
            at = e.end;
        }
        const legend = names.map((n) => make("li", { class: colorOf(n) }, make("i", { class: "swatch" }),
            `${n}: ${count(entities.filter((e) => e.entity_group === n).length, "place")}`));
        result.append(make("p", { class: "text" }, ...parts, text.slice(at).join("")), make("ul", { class: "legend", "aria-label": "Labels" }, ...legend));
        return [`${count(entities.length, "place")} of ${count(names.length, "label")}`, ""];
    },
};
