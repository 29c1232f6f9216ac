// The page of a report: shows the values of its charts, and sorts its tables.
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
