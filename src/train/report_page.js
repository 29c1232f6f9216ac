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
        for (const { path, points } of curves) {
            const line = document.createElement("div");
            const swatch = document.createElement("i");
            swatch.className = `${path.classList[0]} swatch`;
            const text = `${path.dataset.run} ${path.dataset.what} ${Number(value(nearest(points, x).y).toPrecision(4))}`;
            line.append(swatch, text);
            tip.append(line);
        }
        plot.append(tip);
        const right = x > width / 2;
        tip.style.left = right ? "" : `calc(${(100 * x) / width}% + 10px)`;
        tip.style.right = right ? `calc(${100 - (100 * x) / width}% + 10px)` : "";
    });
    svg.addEventListener("pointerleave", () => {
        tip.remove();
        cursor.remove();
    });
}
