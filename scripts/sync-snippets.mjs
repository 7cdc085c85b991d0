// Copies the examples into the README and the pages of docs/, so that the pages show code that
// runs.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";

const root = new URL("../", import.meta.url);
const read = (file) => readFileSync(new URL(file, root), "utf8");
const docs = readdirSync(new URL("docs", root)).filter((name) => name.endsWith(".md"));

for (const page of ["README.md", ...docs.map((name) => `docs/${name}`)]) {
  const text = read(page);
  const synced = text.replaceAll(
    /<!-- (examples\/\S+) -->\n```(ts|python)\n[^]*?```/g,
    (_, file, language) => `<!-- ${file} -->\n\`\`\`${language}\n${read(file)}\`\`\``,
  );
  if (synced !== text) writeFileSync(new URL(page, root), synced);
}
