/**
 * True if the current rendering escapes. Renderings are synchronous and not nested, so one variable is enough. The
 * compiler decides for text that a block prints; filters, macros and captured texts read this variable.
 */
let isOn = false;

/** True if the current rendering escapes. Filters, macros and captured texts then mark their results as safe. */
export function isEscaping(): boolean {
  return isOn;
}

/** Turns escaping on or off; returns the earlier state. */
export function setEscaping(value: boolean): boolean {
  const before = isOn;
  isOn = value;
  return before;
}
