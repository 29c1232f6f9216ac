// Shows the values of a chart's curves under the pointer.  The curves' own paths are the data: a place in the plot is a
// step and a value by the axes that the <svg> names.
"use strict";
for (const plot of document.querySelectorAll(".plot")) {
    const svg = plot.querySelector("svg");
    const axis = { last: +svg.dataset.last, from: +svg.dataset.from, to: +svg.dataset.to, log: svg.dataset.log === "1" };
    const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    const curves = [...svg.querySelectorAll("[data-run]")].map((path) => {
        const numbers = path.getAttribute("d").replaceAll("M", "").trim().split(" ").map(Number);
        const points = [];
        for (let i = 0; i < numbers.length; i += 2) {
            points.push({ x: numbers[i], y: numbers[i + 1] });
        }
        return { path, points };
    });
    const value = (y) => {
        const v = axis.to - (y / height) * (axis.to - axis.from);
        return axis.log ? 10 ** v : v;
    };
    const nearest = (points, x) => points.reduce((a, b) => (Math.abs(b.x - x) < Math.abs(a.x - x) ? b : a));

    const cursor = document.createElementNS("http://www.w3.org/2000/svg", "path");
    cursor.setAttribute("class", "cursor");
    const tip = document.createElement("div");
    tip.className = "tip";

    svg.addEventListener("pointermove", (event) => {
        const box = svg.getBoundingClientRect();
        const x = ((event.clientX - box.left) / box.width) * width;
        if (x < 0 || x > width || curves.length === 0) {
            return;
        }
        cursor.setAttribute("d", `M${x} 0V${height}`);
        svg.append(cursor);
        tip.textContent = `step ${Math.round((x / width) * axis.last).toLocaleString("en")}`;
        const lines = new Map(); // of each run
        for (const { path, points } of curves) {
            const point = nearest(points, x);
            if (x < points[0].x - width / 50 || x > points[points.length - 1].x + width / 50) {
                continue; // before the curve begins, or after it ends
            }
            const color = path.classList[0];
            if (!lines.has(color)) {
                const line = document.createElement("div"), swatch = document.createElement("i");
                const name = document.createElement("b");
                swatch.className = `${color} swatch`;
                name.textContent = path.dataset.run;
                line.append(swatch, name);
                lines.set(color, line);
            }
            const line = lines.get(color), comma = line.childNodes.length > 2 ? ", " : " ";
            line.append(`${comma}${path.dataset.what} ${Number(value(point.y).toPrecision(4))}`);
        }
        tip.append(...lines.values());
        tip.style.left = "0";
        plot.append(tip);
        const at = (x / width) * box.width, room = box.width - tip.offsetWidth;
        const beside = at + 10 <= room ? at + 10 : at - 10 - tip.offsetWidth;
        tip.style.left = `${beside >= -40 ? beside : room}px`;
    });
    svg.addEventListener("pointerleave", () => {
        tip.remove();
        cursor.remove();
    });
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
