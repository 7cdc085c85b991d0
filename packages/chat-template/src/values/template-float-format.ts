import { formatFloat, roundHalfEven } from "../../../python-values/src/index.ts";

/** Presentation types of floats, as Python's format specifications name them. */
export type FloatPresentation = "e" | "f" | "g" | "%" | "repr";

/** The most digits of a printed float. */
const maxPrecision = 100;

/**
 * Returns the text of a float's magnitude, without its sign.
 *
 * @param precision - Digits after the point, or for `g` significant digits.
 */
export function formatMagnitude(
  value: number,
  presentation: FloatPresentation,
  precision: number,
): string {
  const magnitude = Math.abs(value);
  if (Number.isNaN(value)) return presentation === "%" ? "nan%" : "nan";
  if (!Number.isFinite(value)) return presentation === "%" ? "inf%" : "inf";
  const digits = Math.min(precision, maxPrecision);
  switch (presentation) {
    case "repr":
      return formatFloat(magnitude);
    case "f":
      return formatFixed(magnitude, digits);
    case "%":
      return `${formatFixed(magnitude * 100, digits)}%`;
    case "e":
      return formatExponent(magnitude, digits);
    case "g":
      return formatGeneral(magnitude, Math.max(digits, 1));
  }
}

/** Rounds ties to even first, because `toFixed()` rounds them up. */
function formatFixed(magnitude: number, digits: number): string {
  const rounded = roundHalfEven(magnitude, digits);
  if (rounded < 1e21) return rounded.toFixed(digits);
  return BigInt(rounded).toString() + (digits > 0 ? `.${"0".repeat(digits)}` : "");
}

function formatExponent(magnitude: number, digits: number): string {
  const exponent = magnitude === 0 ? 0 : Number(magnitude.toExponential().split("e")[1]);
  const rounded = roundHalfEven(magnitude, digits - exponent);
  const [mantissa = "0", power = "+0"] = rounded.toExponential(digits).split("e");
  return `${mantissa}e${power[0]}${power.slice(1).padStart(2, "0")}`;
}

function formatGeneral(magnitude: number, digits: number): string {
  const scientific = formatExponent(magnitude, digits - 1);
  const [mantissa = "0", power = "+00"] = scientific.split("e");
  const exponent = Number(power);
  if (exponent >= -4 && exponent < digits) {
    return dropZeros(formatFixed(magnitude, digits - 1 - exponent));
  }
  return `${dropZeros(mantissa)}e${power}`;
}

function dropZeros(text: string): string {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}
