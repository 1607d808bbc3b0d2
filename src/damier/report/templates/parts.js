// The parts of a variable: what a bar holds at the pointer.
damier.part("parts", () => {
  const { data, tip, count } = damier;
  tip("svg.bar", (bar, event) => {
    const counts = bar.dataset.n.split(" ").map(Number), total = counts.reduce((a, b) => a + b, 0);
    const box = bar.getBoundingClientRect();
    let rest = (((event.clientX ?? box.left) - box.left) / box.width) * total, j = 0;
    while (j < counts.length - 1 && rest >= counts[j]) rest -= counts[j++];
    return `${data.classes[j]}: ${count(counts[j])} of ${count(total)} (${((100 * counts[j]) / total).toFixed(1)}%)`;
  });
});
