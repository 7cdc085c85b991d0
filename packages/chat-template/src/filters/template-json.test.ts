import { expect, test } from "vitest";
import type { PyDict, PyValue } from "../../../python-values/src/index.ts";
import { compileChatTemplate } from "../chat-template.ts";

const tool: PyDict = new Map<string, PyValue>([
  ["name", "größe"],
  ["deep", Array.from({ length: 50 }, (_, index) => BigInt(index))],
]);

function render(source: string, steps = 1000): string {
  return compileChatTemplate(source, { steps }).render({
    messages: [],
    tools: [tool],
    addGenerationPrompt: false,
    variables: new Map(),
  });
}

test("a tool is written in each layout that is asked for, however often it was written before", () => {
  const line = render("{{ tools[0]|tojson }}");
  expect(line).toMatch(/^\{"name": "größe", "deep": \[0, 1, 2, .*49\]\}$/);
  const ascii = render("{{ tools[0]|tojson(ensure_ascii=true) }}");
  expect(ascii).toBe(line.replace("größe", String.raw`gr\u00f6\u00dfe`));
  const indented = render("{{ tools[0]|tojson(indent=2) }}");
  expect(indented).toMatch(/^\{\n {2}"name": "größe",\n {2}"deep": \[\n {4}0,\n/);
  const dense = render("{{ tools[0]|tojson(separators=(',', ':')) }}");
  expect(dense).toBe(line.replaceAll(", ", ",").replaceAll(": ", ":"));
  const sorted = render("{{ tools[0]|tojson(sort_keys=true) }}");
  expect(sorted).toMatch(/^\{"deep": \[0, /);
  expect(render("{{ tools[0]|tojson }}")).toBe(line);
  expect(render("{{ tools[0]|tojson(indent=none) }}")).toBe(line);
  expect(render("{{ tools[0]|tojson(indent=4) }}")).toBe(indented.replaceAll("  ", "    "));
});

test("writing a tool again is as many steps as writing it the first time", () => {
  const source = "{{ tools[0]|tojson }}";
  for (let round = 0; round < 3; round++) {
    expect(() => render(source, 40)).toThrow("the template takes more than 40 steps");
    expect(render(source, 100)).toContain("größe");
    expect(() => render(source + source, 100)).toThrow("the template takes more than 100 steps");
  }
});
