import Ajv from "ajv";
import { expect, test } from "vitest";
import { runSettings } from "./run-config.ts";
import { checkSettings, completeSettings } from "./setting.ts";
import { settingsSchema } from "./settings-schema.ts";

const isValid = new Ajv.Ajv({ strict: true }).compile(settingsSchema(runSettings));

test("settingsSchema() describes each kind of setting", () => {
  const { properties } = settingsSchema([
    {
      name: "a",
      kind: { type: "number", min: 1, max: 3, whole: true },
      help: "a number",
      default: 2,
    },
    { name: "b", kind: { type: "list", choices: ["x", "y"] }, help: "a list" },
    { name: "c", kind: { type: "number", min: -Infinity, max: Infinity }, help: "any number" },
  ]);
  expect(properties).toEqual({
    $schema: { type: "string" },
    a: { description: "a number", type: "integer", minimum: 1, maximum: 3, default: 2 },
    b: { description: "a list", type: "array", items: { enum: ["x", "y"] } },
    c: { description: "any number", type: "number" },
  });
});

test("its schema takes every default, and a file that names it", () => {
  const settings = completeSettings(runSettings, { env: "storefront", url: ["http://h"] });
  expect(isValid({ ...settings, $schema: "./turnwright.schema.json" })).toBe(true);
});

test.each([
  { colour: "red" },
  { samples: 0 },
  { samples: "2" },
  { engine: "gpu" },
  { url: "http://h" },
  { env: 1 },
])("its schema refuses the same values as the file's reader: %j", (settings) => {
  expect(isValid(settings)).toBe(false);
  expect(() => checkSettings(runSettings, settings)).toThrow();
});
