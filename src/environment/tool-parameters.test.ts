import { describe, expect, test } from "vitest";
import { UsageError } from "../errors.ts";
import { defineForeignTool, defineTool } from "./define-tool.ts";

const options = (properties: object) => ({
  name: "buy",
  description: "Buys.",
  execute: () => "bought",
  parameters: { type: "object", properties } as const,
});
const pattern = { code: { type: "string", pattern: "^(.)\\1$" } };

describe("defineTool()", () => {
  test("refuses a part of its schema that cannot be used, and names it", () => {
    expect(() => defineTool(options(pattern))).toThrow(
      new UsageError(
        'Cannot define tool buy: its parameters are not a valid JSON Schema: properties/code/pattern is "^(.)\\\\1$" ' +
          "(it holds a back-reference), expected a pattern that JavaScript or Python reads and linear time allows",
      ),
    );
  });

  test("takes prices in whole cents", () => {
    const { callable } = defineTool(options({ price: { type: "number", multipleOf: 0.01 } }));
    expect(callable.check({ price: 19.99 })).toEqual({ value: { price: 19.99 } });
    expect(callable.check({ price: 19.999 })).toEqual({
      problems: ["price must be multiple of 0.01"],
    });
  });

  test("arguments that take too many steps to check are the model's mistake", () => {
    const { callable } = defineTool(options({ code: { type: "string", pattern: "^x+$" } }));
    expect(callable.check({ code: "x".repeat(500_000) })).toEqual({
      problems: ["the arguments are too large to check: it takes more than 1000000 steps"],
    });
  });
});

describe("defineForeignTool()", () => {
  test("omits unusable parts, and lists them", () => {
    const { tool, unusable } = defineForeignTool(
      options({ ...pattern, count: { type: "integer" } }),
    );
    expect(unusable).toHaveLength(1);
    expect(tool.callable.check({ code: "ab" })).toEqual({ value: { code: "ab" } });
    expect(tool.callable.check({ code: "ab", count: "x" })).toEqual({
      problems: ["count must be integer"],
    });
  });

  test("passes on arguments that take too many steps to check", () => {
    const { tool } = defineForeignTool(options({ code: { type: "string", pattern: "^x+$" } }));
    const given = { code: "x".repeat(500_000) };
    expect(tool.callable.check(given)).toEqual({
      value: given,
      unchecked: "it takes more than 1000000 steps",
    });
  });
});
