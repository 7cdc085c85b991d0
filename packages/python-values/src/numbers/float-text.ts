/**
 * Returns the `repr()` of a Python `float`: the shortest digits that read back as the same number, always with a
 * point or an exponent, and an exponent of at least two digits below 1e-4 and from 1e16 up. NaN is `nan`, the
 * infinities are `inf` and `-inf`.
 *
 * **Source:** CPython 3.11, `Python/pystrtod.c` (`format_float_short`).
 */
export function formatFloat(value: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  const sign = value < 0 || Object.is(value, -0) ? "-" : "";
  const [mantissa = "0", exponentText = "0"] = Math.abs(value).toExponential().split("e");
  const digits = mantissa.replace(".", "");
  const exponent = Number(exponentText);
  return (
    sign +
    (exponent >= -4 && exponent < 16 ? fixed(digits, exponent) : scientific(digits, exponent))
  );
}

function fixed(digits: string, exponent: number): string {
  if (exponent < 0) return `0.${"0".repeat(-exponent - 1)}${digits}`;
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, "0");
  return `${whole}.${digits.slice(exponent + 1) || "0"}`;
}

function scientific(digits: string, exponent: number): string {
  const fraction = digits.length > 1 ? `.${digits.slice(1)}` : "";
  const magnitude = String(Math.abs(exponent)).padStart(2, "0");
  return `${digits.slice(0, 1)}${fraction}e${exponent < 0 ? "-" : "+"}${magnitude}`;
}
