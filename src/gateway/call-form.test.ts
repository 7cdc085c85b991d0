import { describe, expect, test } from "vitest";
import {
  actionArguments,
  customArguments,
  customInput,
  fitsForm,
  sentArguments,
  toAction,
} from "./call-form.ts";

describe("customInput()", () => {
  test.each([
    ['{"input": "*** Begin Patch\\n"}', "*** Begin Patch\n"],
    ['{"input": ""}', ""],
    // Arguments of another form stay as the policy wrote them.
    ['{"patch": "x"}', '{"patch": "x"}'],
    ['{"input": "x", "why": "y"}', '{"input": "x", "why": "y"}'],
    ['{"input": 3}', '{"input": 3}'],
    ["{}", "{}"],
  ])("of %s", (argumentsText, input) => {
    expect(customInput(argumentsText)).toBe(input);
  });

  test("converts back to the arguments that produce it", () => {
    expect(customArguments('a\n"b"')).toBe('{"input":"a\\n\\"b\\""}');
    expect(customInput(customArguments('{"input": "x"}'))).toBe('{"input": "x"}');
    expect(sentArguments("custom", '{"patch": 1}')).toBe('{"input":"{\\"patch\\": 1}"}');
  });
});

describe("toAction()", () => {
  test("has the members that the protocol requires, and converts back to the arguments", () => {
    const written = '{"command": ["ls", "-l"], "timeout_ms": 5}';
    const action = toAction("local-shell", written)!;
    expect(action).toEqual({ type: "exec", env: {}, command: ["ls", "-l"], timeout_ms: 5 });
    const echoed = { ...action, user: null, working_directory: null };
    expect(JSON.parse(actionArguments("local-shell", echoed))).toEqual(JSON.parse(written));
    expect(JSON.parse(sentArguments("local-shell", written))).toEqual(JSON.parse(written));
    expect(toAction("shell", '{"commands": ["ls"]}')).toEqual({
      commands: ["ls"],
      timeout_ms: null,
      max_output_length: null,
    });
  });

  test.each([
    ["local-shell", '{"command": "ls"}'],
    ["local-shell", "{}"],
    ["shell", '{"commands": [1]}'],
    ["apply-patch", '{"type": "update_file", "path": "a"}'],
    ["apply-patch", '{"type": "move_file", "path": "a", "diff": ""}'],
    ["apply-patch", '{"type": "delete_file"}'],
  ] as const)("returns `undefined` for %s with %s", (form, argumentsText) => {
    expect(toAction(form, argumentsText)).toBeUndefined();
    expect(fitsForm(form, argumentsText)).toBe(false);
  });

  test("deletes a file without a change", () => {
    const written = '{"type": "delete_file", "path": "a"}';
    expect(toAction("apply-patch", written)).toEqual({ type: "delete_file", path: "a" });
  });
});
