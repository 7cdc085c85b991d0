import { expect, test } from "vitest";
import { findToolCallParser } from "../../registry.ts";

const calls = '[{"f": {}}, {"g": {}}]';

test.each([" ", "\n\t", "\u00a0", "\u2003\ufeff"])(
  "the entries of a list divide its span, with any white space before it: %j",
  (space) => {
    const text = `Hi. <|tools_prefix|>${space}${calls}<|tools_suffix|>`;
    const { attempts } = findToolCallParser("apertus2509").parse(text, { tools: [] });
    expect(attempts.map(({ name, raw }) => [name, raw])).toEqual([
      ["f", `<|tools_prefix|>${space}[{"f": {}}, `],
      ["g", '{"g": {}}]<|tools_suffix|>'],
    ]);
  },
);
