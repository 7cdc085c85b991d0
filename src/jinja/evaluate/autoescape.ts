/**
 * Whether the rendering that runs now escapes: renderings are synchronous and never within one another,
 * so that there is one at a time. What a block prints is decided where it stands; filters, macros and
 * captured texts ask this.
 */
let isOn = false;

/** Whether what filters and macros give is marked as safe. */
export function isEscaping(): boolean {
  return isOn;
}

/** Turns it on or off; says how it was before. */
export function setEscaping(value: boolean): boolean {
  const before = isOn;
  isOn = value;
  return before;
}
