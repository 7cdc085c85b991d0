/** Formats nats for people: three significant digits. */
export function nats(value: number): string {
  return `${Number(value.toPrecision(3))} nats`;
}

/** Formats a share for people, such as `3.1 %`. */
export function percent(share: number): string {
  const value = 100 * share;
  if (value > 0 && value < 0.01) return "below 0.01 %";
  return `${value < 1 ? Number(value.toPrecision(2)) : value.toFixed(1)} %`;
}

/** Formats a number that has no unit: three significant digits. */
export function figure(value: number): string {
  return String(Number(value.toPrecision(3)));
}
