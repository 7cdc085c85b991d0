import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { evaluateExpression } from "./evaluate-expression.ts";

const nines = "9".repeat(400);

describe("evaluateExpression()", () => {
  test.each([
    ["2 + 2", "4.0"],
    ["-2**2", "-4.0"],
    ["2**3**2", "512.0"],
    ["2**-1", "0.5"],
    ["-5//2", "-3.0"],
    ["-5.5//2", "-3.0"],
    ["0.125", "0.12"],
    ["2.675", "2.67"],
    ["-0.001", "-0.0"],
    ["1 - - 1", "2.0"],
    ["3. + .5", "3.5"],
    ["00", "0.0"],
    ["(10**30+1)/3", "3.333333333333333e+29"],
    ["10**30//7", "1.4285714285714285e+29"],
    ["9007199254740993", "9007199254740992.0"],
    ["2**1023", "8.98846567431158e+307"],
    ["2**1024/2**1023", "2.0"],
    ["99.99 ** 99.99", "9.454907237831862e+199"],
    ["123456789012345678901 * 3.5 ** -2.5", "5.386973837381168e+18"],
    ["3.0**33", "5559060566555523.0"],
    ["(-2.0)**3", "-8.0"],
    ["0.0**0", "1.0"],
    [`1.0*${nines}`, "Error: int too large to convert to float"],
    [`${nines}.0*2`, "inf"],
    [`${nines}.0-${nines}.0`, "nan"],
    [`(${nines}.0)**0`, "1.0"],
    [`(-1)**(${nines}.0)`, "1.0"],
    [`(-${nines}.0)**3`, "-inf"],
    [`0.5**(${nines}.0)`, "0.0"],
  ])("%s is %s", (text, value) => {
    expect(evaluateExpression(text)).toBe(value);
  });

  test.each([
    ["1/0", "division by zero"],
    ["1.0/0", "float division by zero"],
    ["1//0", "integer division or modulo by zero"],
    ["1.0//0", "float floor division by zero"],
    ["0**-1", "0.0 cannot be raised to a negative power"],
    ["2.0**1024", "(34, 'Numerical result out of range')"],
    ["10**400", "int too large to convert to float"],
    ["10**400/3", "integer division result too large for a float"],
    ["(-8)**0.5", "float() argument must be a string or a real number, not 'complex'"],
    ["(-8)**0.5//1", "unsupported operand type(s) for //: 'complex' and 'int'"],
    ["1/((-8)**0.5*0)", "complex division by zero"],
    ["0**((-8)**0.5)", "0.0 to a negative or complex power"],
    ["((-8)**0.5*0)**-1", "0.0 to a negative or complex power"],
    ["((-8)**0.5)**(10**300)", "complex exponentiation"],
    [
      "-(1 - (-8)**0.5 + 2) / (-8)**0.5",
      "float() argument must be a string or a real number, not 'complex'",
    ],
    [
      "((-8)**0.5)**((-8)**0.5)",
      "float() argument must be a string or a real number, not 'complex'",
    ],
    ["()", "float() argument must be a string or a real number, not 'tuple'"],
    [
      "()+()*2*True"[0] === "(" ? "()+()*2" : "",
      "float() argument must be a string or a real number, not 'tuple'",
    ],
    ["()+1", 'can only concatenate tuple (not "int") to tuple'],
    ["()*1.5", "can't multiply sequence by non-int of type 'float'"],
    ["()*10**30", "cannot fit 'int' into an index-sized integer"],
    ["...", "float() argument must be a string or a real number, not 'ellipsis'"],
    ["-...", "bad operand type for unary -: 'ellipsis'"],
    ["1**...", "unsupported operand type(s) for ** or pow(): 'int' and 'ellipsis'"],
    ["1(2)", "'int' object is not callable"],
    ["1.5()()", "'float' object is not callable"],
    ["1(1/0)", "division by zero"],
    ["1.5(*2)", "1.5 argument after * must be an iterable, not int"],
    ["()(*())", "'tuple' object is not callable"],
    ["...(**())", "Ellipsis argument after ** must be a mapping, not tuple"],
    ["1(**2)", "1 argument after ** must be a mapping, not int"],
  ])("%s fails with %s", (text, message) => {
    expect(evaluateExpression(text)).toBe(`Error: ${message}`);
  });

  test.each([
    ["", "invalid syntax (<string>, line 0)"],
    ["1 2", "invalid syntax (<string>, line 1)"],
    ["1.5.5", "invalid syntax (<string>, line 1)"],
    ["1 / / 2", "invalid syntax (<string>, line 1)"],
    ["(1 / / 2", "invalid syntax (<string>, line 1)"],
    ["**1", "invalid syntax (<string>, line 1)"],
    ["(1 2)", "invalid syntax. Perhaps you forgot a comma? (<string>, line 1)"],
    ["1(2)(3 4)", "invalid syntax. Perhaps you forgot a comma? (<string>, line 1)"],
    ["(*1)", "cannot use starred expression here (<string>, line 1)"],
    ["(**1)", "cannot use double starred expression here (<string>, line 1)"],
    ["(", "'(' was never closed (<string>, line 1)"],
    ["(1.5.", "'(' was never closed (<string>, line 1)"],
    ["(1 2", "'(' was never closed (<string>, line 1)"],
    ["(1 2))", "unmatched ')' (<string>, line 1)"],
    [`${"(".repeat(201)}1`, "too many nested parentheses (<string>, line 1)"],
    [
      "1 2 007",
      "leading zeros in decimal integer literals are not permitted; " +
        "use an 0o prefix for octal integers (<string>, line 1)",
    ],
    [
      "9".repeat(4301),
      "Exceeds the limit (4300 digits) for integer string conversion: value has 4301 digits; " +
        "use sys.set_int_max_str_digits() to increase the limit - Consider hexadecimal for huge " +
        "integer literals to avoid decimal conversion limits. (<string>, line 1)",
    ],
  ])("%s is refused with %s", (text, message) => {
    expect(evaluateExpression(text)).toBe(`Error: ${message}`);
  });

  test("accepts 200 parentheses and long chains, and fails if CPython fails", () => {
    expect(evaluateExpression(`${"(".repeat(200)}1${")".repeat(200)}`)).toBe("1.0");
    expect(evaluateExpression(`1${"+1".repeat(2000)}`)).toBe("2001.0");
    expect(evaluateExpression(`${"-".repeat(2001)}1`)).toBe("-1.0");
    const tooDeep = "Error: maximum recursion depth exceeded during compilation";
    expect(evaluateExpression(`1${"+1".repeat(100_000)}`)).toBe(tooDeep);
    expect(evaluateExpression(`${"-".repeat(4000)}1`)).toBe(tooDeep);
    expect(evaluateExpression(`${"-".repeat(100_000)}1`)).toBe("Error: ");
    expect(evaluateExpression(`1${"**1".repeat(100_000)}`)).toBe("Error: ");
  });

  test("answers at once for expressions that fill the original's memory", () => {
    expect(evaluateExpression("9**9**9")).toBe("Error: int too large to convert to float");
    expect(evaluateExpression("9**9**9**9")).toBe("Error: int too large to convert to float");
    expect(evaluateExpression("1**9**9")).toBe("1.0");
  });

  test("answers any text of its characters", () => {
    const text = fc.string({
      unit: fc.constantFrom(..."0123456789+-*/(). ", "**", "//", "...", "()"),
      maxLength: 40,
    });
    fc.assert(
      fc.property(text, (expression) => {
        expect(evaluateExpression(expression)).toMatch(/^(?:Error: .*|-?inf|nan|-?[0-9.e+-]+)$/s);
      }),
      { numRuns: 2000 },
    );
  });
});
