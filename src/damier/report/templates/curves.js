// Curves of a class, and the handle: what the most probable rows hold, and what they are worth.
part("curves", () => {
  const held = data.worth, box = $("worth-panel"), SIDE = 240;
  if (!held || !box) return;
  const [top, cost, benefit, best, look] = [$("top"), $("cost"), $("benefit"), $("top-best"), box.querySelector(".look")];
  const amount = (x) => x.toLocaleString("en", { maximumFractionDigits: Math.abs(x) < 100 ? 2 : 0 }).replace("-", "−");
  const at = ([x, y]) => [(SIDE * x).toFixed(2), (SIDE * (1 - y)).toFixed(2)];
  const line = (id, points) => $(id).setAttribute("d", `M${points.map((one) => at(one).join(" ")).join("L")}`);
  const put = (circle, point) => { const [x, y] = at(point); circle.setAttribute("cx", x); circle.setAttribute("cy", y); return circle; };

  // What the top percents of the rows hold of the class looked at, or of a number.
  const now = () => {
    if (held.means) return { name: data.target, tops: [held.means[0], ...held.means].map((mean, k) => {
      const rows = (k * held.rows) / 100, part = held.captured?.[k], brought = Number(benefit.value) * rows * mean, spent = Number(cost.value) * rows;
      return { mean, rows, part, lift: k ? (100 * part) / k : 0, brought, spent, money: brought - spent };
    }) };
    const j = data.shown.indexOf(Number(look.value)), [auc, captured, bins] = held.curves[j], of = held.counts[j], q = of / held.rows;
    return { name: data.classes[j], auc, bins, q, tops: captured.map((share, k) => {
      const rows = (k * held.rows) / 100, brought = Number(benefit.value) * share * of, spent = Number(cost.value) * rows;
      return { part: share, rows, found: share * of, lift: k ? (100 * share) / k : 0, others: (k / 100 - q * share) / (1 - q || 1), brought, spent, money: brought - spent };
    }) };
  };
  const show = () => {
    const { name, auc, bins, q, tops } = now(), k = Number(top.value), { part, mean, rows, found, lift, others, brought, spent, money } = tops[k];
    if (bins) {
      line("curve-gains", tops.map((one, i) => [i / 100, one.part]));
      line("curve-best", [[0, 0], [q, 1], [1, 1]]);
      line("curve-roc", tops.map((one) => [one.others, one.part]));
      line("curve-calibration", bins);
      $("curve-points").replaceChildren(...bins.map(([x, y]) => put(draw("circle", { class: "dot", r: 3.5 }, draw("title", {}, `${(100 * x).toFixed(1)}% predicted, ${(100 * y).toFixed(1)}% observed`)), [x, y])));
      put($("roc-dot"), [others, part]);
      $("curve-auc").textContent = auc.toFixed(3);
      $("worth-words").replaceChildren(`The ${k}% of the rows that are most probably `, bold(name), " hold ", bold(share(part)), ` of them: ${count(Math.round(found))} of ${count(Math.round(rows))} rows, `, bold(lift.toFixed(2)), " times as many as among all.");
    } else {
      const average = ` (all rows: ${figure(held.mean)}).`;
      $("worth-words").replaceChildren(`The ${k}% of the rows that are predicted highest `, ...(held.axis ? ["have a mean of ", bold(figure(mean)), average] : ["hold ", bold(share(part)), ` of the total ${name}, `, bold(lift.toFixed(2)), " times as much as by chance: ", bold(figure(mean)), ` on average${average}`]));
    }
    line("curve-mark", [[k / 100, 1], [k / 100, 0]]);
    put($("curve-dot"), [k / 100, held.axis ? (mean - held.axis[0]) / (held.axis[1] - held.axis[0]) : part]);
    $("top-at").textContent = `${k}%`;
    top.setAttribute("aria-valuetext", $("worth-words").textContent);
    const most = tops.reduce((a, one, i) => (one.money > tops[a].money ? i : a), 0), asked = brought || spent || tops[100].brought || tops[100].spent;
    $("worth-money").replaceChildren(...(asked ? ["They are worth ", bold(amount(money)), `: ${amount(brought)} brought, ${amount(spent)} spent. The most is ${amount(tops[most].money)}, at the top ${most}%.`] : []));
    best.hidden = !asked || most === k;
    best.textContent = `Go to ${most}%`;
    best.value = most;
  };
  const changed = () => {
    state.set("top", top.value === "10" ? "" : top.value);
    state.set("cost", cost.value);
    state.set("benefit", benefit.value);
    show();
  };
  for (const one of [top, cost, benefit]) on(one, "input", changed);
  on(best, "click", () => { top.value = best.value; changed(); top.focus(); say($("worth-words").textContent); });
  // The curve of gains is a handle as well.
  const gains = $("curve-gains"), chart = gains.ownerSVGElement;
  const pull = (event) => {
    const { a, e } = gains.getScreenCTM();
    if (event.buttons !== 1) return;
    top.value = Math.round((100 * (event.clientX - e)) / a / SIDE);
    changed();
  };
  on(chart, "pointerdown pointermove", pull);
  chart.classList.add("handle");
  panel(box, {
    name: () => `${data.name}-${now().name}-curves`,
    table: () => (held.means ? [["top percent", "rows", "mean", "share of the total", "money"], ...now().tops.map((one, k) => [k, one.rows, one.mean, one.part ?? "", one.money])] : [["top percent", "rows", "captured", "share captured", "lift", "share of the others", "money"], ...now().tops.map((one, k) => [k, one.rows, one.found, one.part, one.lift, one.others, one.money])]),
  });
  on(document, "looked", show);
  const linked = () => {
    const asked = state.get("top");
    top.value = /^\d+$/.test(asked) ? asked : 10;
    for (const [input, name] of [[cost, "cost"], [benefit, "benefit"]]) {
      const held = state.get(name);
      input.value = /^-?(\d+|\d*\.\d+)(e[-+]?\d+)?$/i.test(held) ? held : "";
    }
    show();
  };
  linked();
  state.on(["top", "cost", "benefit"], linked);
});
