// The contrast of every text that can be seen with what is behind it, by the formula of WCAG 2.
(() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  // The browser itself works out what a colour is, however it is written.
  function rgba(color) {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  }
  function luminance(color) {
    const [r, g, b] = rgba(color).slice(0, 3).map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }
  function ground(e) {
    if (e.closest("svg") && !e.matches(".after, .before")) {
      const shape = (e.closest(".bar") || e.closest(".node:has(.letter, .inside)"))?.querySelector(".fill");
      const inside = shape && (e.closest(".bar") || e.matches(".letter, .inside"));
      if (inside && getComputedStyle(shape).fill !== "none") return getComputedStyle(shape).fill;
    }
    for (let box = e.closest("svg") ? e.closest("div, figure") : e; box; box = box.parentElement) {
      const color = getComputedStyle(box).backgroundColor;
      if (rgba(color)[3] === 255) return color;
    }
    return "white";
  }
  const all = [];
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].filter((n) => n.nodeType === 3 && n.data.trim()).map((n) => n.data.trim()).join(" ");
    if (!own || e.matches("script, style, title") || !e.checkVisibility({visibilityProperty: true})) continue;
    const box = e.getBoundingClientRect();
    if (box.width === 0 || box.right < 0) continue;
    const style = getComputedStyle(e);
    const color = e.closest("svg") ? style.fill : style.color;
    const behind = ground(e);
    const [a, b] = [luminance(color), luminance(behind)].sort((x, y) => y - x);
    all.push({Text: own.slice(0, 40), Where: `${e.tagName} ${e.getAttribute("class") || ""}`, Color: color, Ground: behind, Ratio: (a + 0.05) / (b + 0.05)});
  }
  return all;
})()
