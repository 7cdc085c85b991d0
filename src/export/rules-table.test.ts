import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { columnsTable, rulesTable, teachersTable } from "./rules-table.fixture.ts";

test("docs/trainers.md has the rules of every exporter", async () => {
  const page = await readFile(new URL("../../docs/trainers.md", import.meta.url), "utf8");
  const [, shown] = /<!-- rules -->\n([^]*?)<!-- \/rules -->/.exec(page)!;
  expect(shown).toBe(rulesTable());
});

test("docs/trainers.md has the rules for side columns", async () => {
  const page = await readFile(new URL("../../docs/trainers.md", import.meta.url), "utf8");
  const [, shown] = /<!-- columns -->\n([^]*?)<!-- \/columns -->/.exec(page)!;
  expect(shown).toBe(columnsTable());
});

test("docs/distillation.md has the forms of a teacher's columns", async () => {
  const page = await readFile(new URL("../../docs/distillation.md", import.meta.url), "utf8");
  const [, shown] = /<!-- teachers -->\n([^]*?)<!-- \/teachers -->/.exec(page)!;
  expect(shown).toBe(teachersTable());
});
