// Shows the values of a chart's curves under the pointer.  The curves' own paths are the data: a place in the plot is a
// step and a value by the axes that the <svg> names, and both may change as long as the chart is shown.
"use strict";
const curvesOf = (svg) => [...svg.querySelectorAll("[data-run]")].map((path) => {
    const numbers = path.getAttribute("d").replaceAll("M", "").trim().split(" ").map(Number);
    const points = [];
    for (let i = 0; i < numbers.length; i += 2) {
        points.push({ x: numbers[i], y: numbers[i + 1] });
    }
    return { path, points };
});

function showValues(plot) {
    const svg = plot.querySelector("svg");
    const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    const valueAt = (y) => {
        const { from, to, log } = svg.dataset, v = +to - (y / height) * (to - from);
        return log === "1" ? 10 ** v : v;
    };
    const nearest = (points, x) => points.reduce((a, b) => (Math.abs(b.x - x) < Math.abs(a.x - x) ? b : a));

    const cursor = document.createElementNS("http://www.w3.org/2000/svg", "path");
    cursor.setAttribute("class", "cursor");
    const tip = document.createElement("div");
    tip.className = "tip";

    svg.addEventListener("pointermove", (event) => {
        const box = svg.getBoundingClientRect(), curves = curvesOf(svg);
        const x = ((event.clientX - box.left) / box.width) * width;
        if (x < 0 || x > width || curves.length === 0) {
            return;
        }
        cursor.setAttribute("d", `M${x} 0V${height}`);
        svg.append(cursor);
        tip.textContent = `step ${Math.round((x / width) * svg.dataset.last).toLocaleString("en")}`;
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
            line.append(`${comma}${path.dataset.what} ${Number(valueAt(point.y).toPrecision(4))}`);
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
