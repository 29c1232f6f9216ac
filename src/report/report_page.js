// The page of a report: shows the values of its charts, sorts its tables, and follows a run that goes on.
"use strict";
for (const plot of document.querySelectorAll(".plot")) {
    showValues(plot);
}

// A click on the heading of a table's column sorts the rows by it: numbers from the largest, a second click turns them round.
for (const heading of document.querySelectorAll(".data th")) {
    heading.addEventListener("click", () => {
        const body = heading.closest("table").tBodies[0], column = heading.cellIndex;
        const down = heading.dataset.down !== "1";
        heading.dataset.down = down ? "1" : "0";
        const text = (row) => row.cells[column].textContent;
        const compare = (a, b) => Number(text(b)) - Number(text(a)) || text(a).localeCompare(text(b));
        body.append(...[...body.rows].sort((a, b) => (down ? compare(a, b) : compare(b, a))));
    });
}

// The page of a run that goes on loads again, unless it is hidden, a chart is being read, or nothing has drawn it for a
// day: the run was killed.  Its place and its open parts stay.
const drawn = document.querySelector("[data-drawn]"), details = [...document.querySelectorAll("details")];
const kept = `kiln ${location.pathname}`, before = JSON.parse(sessionStorage.getItem(kept) ?? "null");
sessionStorage.removeItem(kept);
if (before !== null) {
    details.forEach((part, i) => { part.open = before.open[i] ?? part.open; });
    scrollTo(0, before.top);
}
if (drawn !== null) {
    setInterval(() => {
        const isRead = document.hidden || document.querySelector(".tip") !== null || getSelection().type === "Range";
        if (!isRead && Date.now() / 1000 - drawn.dataset.drawn < 86400) {
            sessionStorage.setItem(kept, JSON.stringify({ top: scrollY, open: details.map((part) => part.open) }));
            location.reload();
        }
    }, 10000);
}
