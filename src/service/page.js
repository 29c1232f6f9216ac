// The frame of the page: the server and its models, tabs, the address, and how a tab's request is sent, stopped and shown
// as a program.  Nothing runs before the reader asks for it.  Text is set as text, never as markup.
"use strict";
const byId = (id) => document.getElementById(id);

// An element with attributes and children; a child that is a string is text.
function make(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
        made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
}

// ---- the server ----

const keyName = "kiln key"; // in the storage of this tab alone
const server = { models: [], watched: [], isGone: false };

const address = (path) => new URL(path, location.href.split("#")[0]).href;
const modelPath = (model) => "models/" + model.split("/").map(encodeURIComponent).join("/");

// What an error says, in each dialect.
function messageOf(reply, status) {
    const error = reply?.error;
    return (typeof error === "string" ? error : error?.message) || `the server answers with status ${status}`;
}

// A response that is no error.
async function send(path, options = {}) {
    const key = sessionStorage.getItem(keyName);
    const headers = { Accept: "application/json", ...options.headers };
    if (key) {
        headers.Authorization = `Bearer ${key}`;
    }
    let response;
    try {
        response = await fetch(path, { cache: "no-store", ...options, headers });
    } catch (error) {
        if (error.name !== "AbortError") {
            lookSoon(0);
            error = new Error("the server cannot be reached");
        }
        throw error;
    }
    if (!response.ok) {
        if (response.status === 401) {
            byId("key").hidden = false;
        }
        throw new Error(messageOf(await response.json().catch(() => null), response.status));
    }
    return response;
}

const post = (request, signal) => send(request.path, {
    method: "POST", body: JSON.stringify(request.body), headers: { "Content-Type": "application/json" }, signal,
});

// The events of a stream, each {event, data}.
async function* eventsOf(response) {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ;) {
        const { done, value } = await reader.read();
        if (done) {
            return;
        }
        const blocks = (rest + value).split("\n\n");
        rest = blocks.pop();
        for (const block of blocks) {
            const fields = { event: "", data: "" };
            for (const line of block.split("\n")) {
                const [, name, text] = /^(event|data): (.*)$/.exec(line) || [];
                if (name) {
                    fields[name] += text;
                }
            }
            if (fields.data) {
                yield fields;
            }
        }
    }
}

async function loadModels() {
    const reply = await (await send("v1/models")).json();
    server.models = reply.data;
    server.watched = reply.watched || [];
    byId("key").hidden = !sessionStorage.getItem(keyName);
    showTabs();
}

const untilLook = { timer: 0 };
const lookSoon = (ms) => {
    clearTimeout(untilLook.timer);
    untilLook.timer = setTimeout(look, ms);
};

// Whether the server is there; more often while it is not.
async function look() {
    const gone = byId("gone");
    try {
        if (!document.hidden) {
            await fetch("health/live", { cache: "no-store" });
            if (server.isGone) {
                await loadModels();
                server.isGone = false;
                gone.className = "back";
                gone.textContent = "The server is back.";
                setTimeout(() => { gone.textContent = server.isGone ? gone.textContent : ""; }, 5000);
            }
        }
    } catch {
        server.isGone = true;
        gone.className = "";
        gone.textContent = "The server does not answer. This page asks again until it does; what you wrote stays.";
    }
    lookSoon(server.isGone ? 1000 : 8000);
}

// ---- tabs ----

const tasks = {};  // by the id of a panel: what page_tasks.js and page_watch.js know of it
const running = {}; // by the id of a panel: what stops its request
const panels = [...document.querySelectorAll("main > section")];
const tabOf = (panel) => byId(`tab-${panel.id}`);
let chosen = null; // the panel that is shown

const modelsOf = (panel) => server.models.filter((m) => m.answers.includes(panel.id));
const hasModel = (panel) => (panel.id === "watch" ? server.watched.length > 0 : modelsOf(panel).length > 0);

function choose(panel, wantedModel) {
    chosen = panel;
    for (const p of panels) {
        p.hidden = p !== panel;
        tabOf(p).setAttribute("aria-selected", p === panel);
        tabOf(p).tabIndex = p === panel ? 0 : -1;
    }
    const select = byId("model"), before = wantedModel || select.value;
    select.replaceChildren(...modelsOf(panel).map((m) => make("option", {}, m.id)));
    select.value = before;
    select.selectedIndex = Math.max(select.selectedIndex, 0);
    select.closest("label").hidden = panel.id === "watch";
    tasks[panel.id].shown?.(panel);
    showProgram(panel);
}

function showTabs() {
    const shown = panels.filter(hasModel), empty = byId("empty");
    panels.forEach((p) => { tabOf(p).hidden = !shown.includes(p); });
    empty.hidden = shown.length > 0;
    empty.textContent = "No model is served here, and no run is watched.";
    if (shown.length > 0 && !shown.includes(chosen)) {
        readAddress();
    } else if (chosen) {
        choose(chosen);
    }
}

function moveTab(event) {
    const tabs = [...byId("tabs").children].filter((t) => !t.hidden);
    const at = tabs.indexOf(document.activeElement);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (at >= 0 && to !== undefined) {
        event.preventDefault();
        const tab = tabs[(to + tabs.length) % tabs.length];
        tab.focus();
        tab.click();
    }
}

// ---- the address: the tab, the model and what was written, to be kept or passed on ----

const fieldsOf = (panel) => [...panel.querySelectorAll("[name]")];
const isDefault = (f) => (f.type === "checkbox" ? f.checked === f.defaultChecked : f.value === f.defaultValue);

function writeAddress() {
    const state = new URLSearchParams({ tab: chosen.id });
    if (chosen.id !== "watch") {
        state.set("model", byId("model").value);
    }
    for (const f of fieldsOf(chosen).filter((f) => !isDefault(f))) {
        state.set(f.name, f.type === "checkbox" ? f.checked : f.value);
    }
    history.replaceState(null, "", `#${state}`);
}

function readAddress() {
    const state = new URLSearchParams(location.hash.slice(1)), shown = panels.filter(hasModel);
    const panel = shown.find((p) => p.id === state.get("tab")) || shown[0];
    if (panel === undefined) {
        return;
    }
    for (const f of fieldsOf(panel)) {
        if (f.type === "checkbox") {
            f.checked = state.has(f.name) ? state.get(f.name) === "true" : f.defaultChecked;
        } else {
            f.value = state.has(f.name) ? state.get(f.name) : f.defaultValue;
        }
    }
    choose(panel, state.get("model"));
}

// ---- the same from a program ----

const inShell = (text) => `'${text.replaceAll("'", "'\\''")}'`;

function inPython(value, indent = "") {
    const deeper = `${indent}    `;
    if (Array.isArray(value)) {
        return value.length === 0 ? "[]" : `[\n${value.map((v) => deeper + inPython(v, deeper)).join(",\n")},\n${indent}]`;
    }
    if (value !== null && typeof value === "object") {
        const lines = Object.entries(value).map(([k, v]) => `${deeper}${JSON.stringify(k)}: ${inPython(v, deeper)},\n`);
        return `{\n${lines.join("")}${indent}}`;
    }
    return { true: "True", false: "False", null: "None" }[value] || JSON.stringify(value);
}

function asCurl(request, hasKey) {
    const lines = [`curl ${request.body.stream ? "-N " : ""}${inShell(address(request.path))}`, "-H 'Content-Type: application/json'"];
    if (hasKey) {
        lines.push('-H "Authorization: Bearer $KILN_KEY"');
    }
    lines.push(`-d ${inShell(JSON.stringify(request.body, null, 2))}`);
    return lines.join(" \\\n  ");
}

function asPython(request, hasKey) {
    const key = hasKey ? 'os.environ["KILN_KEY"]' : '"none"', imports = hasKey ? "import os\n\n" : "";
    if (request.client) { // of OpenAI
        const given = Object.entries(request.body).map(([k, v]) => `    ${k}=${inPython(v, "    ")},\n`).join("");
        return `${imports}from openai import OpenAI\n\nclient = OpenAI(base_url=${inPython(address("v1"))}, api_key=${key})\n` +
            `reply = client.${request.client}.create(\n${given})\n${request.reads}\n`;
    }
    const headers = hasKey ? `    headers={"Authorization": "Bearer " + ${key}},\n` : "";
    return `${imports}import requests\n\nreply = requests.post(\n    ${inPython(address(request.path))},\n` +
        `    json=${inPython(request.body, "    ")},\n${headers})\nreply.raise_for_status()\nprint(reply.json())\n`;
}

function showProgram(panel) {
    const texts = panel.querySelectorAll("pre");
    if (texts.length === 2) {
        const request = requestOf(panel), hasKey = sessionStorage.getItem(keyName) !== null;
        texts[0].textContent = asCurl(request, hasKey);
        texts[1].textContent = asPython(request, hasKey);
    }
}

async function copy(button, text) {
    let done = "Copied";
    try {
        await navigator.clipboard.writeText(text.textContent);
    } catch { // without https, or not allowed: the reader copies what is selected
        getSelection().selectAllChildren(text);
        done = "Selected";
    }
    button.firstChild.data = done;
    setTimeout(() => { button.firstChild.data = "Copy"; }, 1500);
}

// ---- a request ----

function valuesOf(panel) {
    const read = (f) => (f.type === "checkbox" ? f.checked : f.type !== "number" ? f.value : f.value === "" ? null : Number(f.value));
    return Object.fromEntries(fieldsOf(panel).map((f) => [f.name, read(f)]));
}

const requestOf = (panel) => tasks[panel.id].request(valuesOf(panel), byId("model").value);

function say(panel, text, isBad = false) {
    const said = panel.querySelector(".said");
    said.className = isBad ? "said bad" : "said";
    said.textContent = text;
}

function setBusy(panel, stopper) {
    const run = panel.querySelector(".run"), stop = panel.querySelector(".stop");
    running[panel.id] = stopper;
    panel.querySelector(".result").setAttribute("aria-busy", stopper !== null);
    if (stopper === null && document.activeElement === stop) {
        run.focus();
    }
    stop.disabled = stopper === null;
}

async function run(panel) {
    const form = panel.querySelector("form"), result = panel.querySelector(".result");
    if (!form.reportValidity()) {
        return;
    }
    running[panel.id]?.abort();
    const stopper = new AbortController(), began = performance.now();
    const model = server.models.find((m) => m.id === byId("model").value);
    setBusy(panel, stopper);
    say(panel, "Running.");
    result.replaceChildren();
    try {
        const values = valuesOf(panel), response = await post(requestOf(panel), stopper.signal);
        const [done, more] = await tasks[panel.id].show({ panel, result, values, model, response, began });
        say(panel, `${done} in ${((performance.now() - began) / 1000).toFixed(2)} s${more}.`);
    } catch (error) {
        const message = error instanceof TypeError ? "the server broke the answer off" : error.message;
        if (!stopper.signal.aborted) {
            say(panel, `It failed: ${message}.`, true);
        } else if (running[panel.id] === stopper) {
            say(panel, "Stopped.");
        }
    }
    if (running[panel.id] === stopper) {
        setBusy(panel, null);
    }
}

// ---- the beginning ----

function furnish(panel) {
    const tab = make("button", { role: "tab", id: `tab-${panel.id}`, type: "button", "aria-controls": panel.id }, panel.dataset.title);
    tab.hidden = true;
    tab.addEventListener("click", () => { choose(panel); writeAddress(); });
    byId("tabs").append(tab);
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", tab.id);
    const form = panel.querySelector(".task");
    if (form === null) {
        return;
    }
    form.append(byId("running").content.cloneNode(true));
    panel.append(byId("answering").content.cloneNode(true));
    form.querySelector(".run").textContent = panel.dataset.verb;
    form.querySelector(".stop").addEventListener("click", () => running[panel.id]?.abort());
    form.addEventListener("submit", (event) => { event.preventDefault(); run(panel); });
    form.addEventListener("input", () => { showProgram(panel); writeSoon(); });
    for (const button of panel.querySelectorAll(".code button")) {
        button.addEventListener("click", () => copy(button, button.closest("h2").nextElementSibling));
    }
}

let written = 0;
const writeSoon = () => {
    clearTimeout(written);
    written = setTimeout(writeAddress, 300);
};

document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
        running[chosen?.id]?.abort();
    } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && chosen?.querySelector(".task")) {
        event.preventDefault();
        run(chosen);
    }
});
byId("tabs").addEventListener("keydown", moveTab);
byId("model").addEventListener("change", () => { choose(chosen); writeAddress(); });
byId("key").addEventListener("submit", (event) => {
    event.preventDefault();
    sessionStorage.setItem(keyName, event.target.key.value);
    begin();
});
addEventListener("hashchange", readAddress);
addEventListener("visibilitychange", () => lookSoon(0));

function begin() {
    loadModels().catch((error) => { byId("empty").textContent = `The models cannot be read: ${error.message}.`; });
}

addEventListener("DOMContentLoaded", () => {
    panels.forEach(furnish);
    begin();
    lookSoon(8000);
});
