import { InvalidArgumentError } from "commander";

/** Parses the value of `--turn-discount`. */
export function toDiscount(text: string): number {
  const discount = Number(text);
  if (text.trim() !== "" && discount >= 0 && discount <= 1) return discount;
  throw new InvalidArgumentError("expected a number from 0 to 1");
}
