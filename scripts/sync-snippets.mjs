// Copies the examples into the README, so that what it shows is what runs.
import { readFileSync, writeFileSync } from "node:fs";

const readme = new URL("../README.md", import.meta.url);
const text = readFileSync(readme, "utf8");
const synced = text.replaceAll(
  /<!-- (examples\/\S+) -->\n```ts\n[^]*?```/g,
  (_, file) =>
    `<!-- ${file} -->\n\`\`\`ts\n${readFileSync(new URL(`../${file}`, import.meta.url), "utf8")}\`\`\``,
);
if (synced !== text) writeFileSync(readme, synced);
