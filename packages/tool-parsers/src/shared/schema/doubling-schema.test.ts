import { expect, test } from "vitest";
import { toolFromOpenAi } from "../../tool-definition.ts";
import { type PlainJson, type PyDict, toPyValue } from "../../../../python-values/src/index.ts";
import { typeProperties } from "../../formats/response-template/typed-parameters.ts";
import { readDotsValue } from "../../formats/dots/dots-value.ts";
import { typesOfParameter } from "../../formats/glm/glm47-schema.ts";

/** Parameters of which one leads to `width` schemas, each of which leads to as many again. */
function parameters(
  keyword: string,
  { depth, width }: { depth: number; width: number },
): PlainJson {
  const level = (n: number) => Array.from({ length: width }, () => ({ $ref: `#/$defs/d${n}` }));
  const definitions = Array.from({ length: depth }, (_, n) => [
    `d${n}`,
    { [keyword]: level(n + 1) },
  ]);
  return {
    type: "object",
    properties: { a: { $ref: "#/$defs/d0" }, b: { type: "integer" } },
    $defs: { ...Object.fromEntries(definitions), [`d${depth}`]: { description: "the end" } },
  };
}

// Without a limit, each of these would take longer than a lifetime.
const shapes = ["anyOf", "allOf"].flatMap((keyword) =>
  [
    { depth: 60, width: 2 },
    { depth: 9, width: 200 },
  ].map((size) => [keyword, size] as const),
);

test.each(shapes)("a client's schema that doubles by %s (%o) defines no type", (keyword, size) => {
  const schema = toPyValue(parameters(keyword, size)) as PyDict;
  expect(typesOfParameter(schema, { key: "a" })).toBeUndefined();
  expect(typesOfParameter(schema, { key: "b" })).toEqual(new Set(["integer"]));
  const properties = schema.get("properties") as PyDict;
  expect(typeProperties(schema)?.get("b")).toEqual(properties.get("b"));
  expect(typeProperties(schema)?.has("a")).toBe(true);
  const openai = { type: "function", function: { name: "f", parameters: schema } };
  const tools = [toolFromOpenAi(toPyValue(openai), "f")];
  const context = { tools, dialect: "sglang", toolPositions: new Map([["f", 0]]) } as never;
  expect(readDotsValue("1", { name: "f", key: "a" }, context)).toBe("1");
});
