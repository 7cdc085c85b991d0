import { describe, expect, test } from "vitest";
import type { PyDict } from "../../packages/python-values/src/value.ts";
import { bindArguments } from "./bind-arguments.ts";

const bound = {
  domain: "retail",
  tool: { name: "do_it", className: "DoIt", parameters: ["a", "b", "c"] },
};

function given(...names: string[]): PyDict {
  return new Map(names.map((name) => [name, `value of ${name}`]));
}

describe("bindArguments()", () => {
  test("gives the values in the order of the parameters", () => {
    expect(bindArguments(bound, given("c", "a", "b"))).toEqual([
      "value of a",
      "value of b",
      "value of c",
    ]);
  });

  test.each([
    [["a", "b"], "DoIt.invoke() missing 1 required positional argument: 'c'"],
    [["b"], "DoIt.invoke() missing 2 required positional arguments: 'a' and 'c'"],
    [[], "DoIt.invoke() missing 3 required positional arguments: 'a', 'b', and 'c'"],
    [["x", "y"], "DoIt.invoke() got an unexpected keyword argument 'x'"],
    [["a", "__proto__"], "DoIt.invoke() got an unexpected keyword argument '__proto__'"],
    [["a", "it's"], "DoIt.invoke() got an unexpected keyword argument 'it's'"],
    [
      ["x", "data"],
      "tau_bench.envs.retail.tools.do_it.DoIt.invoke() got multiple values for keyword argument 'data'",
    ],
  ])("refuses %j as CPython 3.11 does", (names, message) => {
    expect(() => bindArguments(bound, given(...names))).toThrow(
      expect.objectContaining({ exception: "TypeError", message }),
    );
  });
});
