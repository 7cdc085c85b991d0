/**
 * Returns the value below which the beta distribution has the probability `p`: 0 if `a` is 0, and 1
 * if `b` is 0. Inverts the distribution's continued fraction by bisection.
 *
 * **Source:** NIST Digital Library of Mathematical Functions, 8.17.22.
 */
export function betaQuantile(p: number, a: number, b: number): number {
  if (a <= 0) return 0;
  if (b <= 0) return 1;
  return bisect((x) => betaShare(x, a, b) < p, 0, 1);
}

/**
 * Returns the value below which Student's t distribution has the probability `p`, from 0.5 up to 1.
 *
 * @param freedom - Degrees of freedom, above 0; `Infinity` for the normal distribution.
 */
export function studentQuantile(p: number, freedom: number): number {
  // Above this limit the two distributions differ by less than 1e-7 of the value, and the continued
  // fraction would need too many terms.
  const count = Math.min(freedom, 1e7);
  // P(|T| > t) is the beta distribution's probability below count / (count + t²).
  const x = betaQuantile(2 * (1 - p), count / 2, 0.5);
  return Math.sqrt((count * (1 - x)) / x);
}

/** Returns the beta distribution's probability below `x`. */
function betaShare(x: number, a: number, b: number): number {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const front = Math.exp(
    logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x),
  );
  // The continued fraction converges quickly below the mean. Above it, the other tail's fraction
  // does.
  return x < (a + 1) / (a + b + 2)
    ? (front * betaFraction(x, a, b)) / a
    : 1 - (front * betaFraction(1 - x, b, a)) / b;
}

/** Computes the continued fraction by Lentz's method. */
function betaFraction(x: number, a: number, b: number): number {
  let [c, d] = [1, 1 / away(1 - ((a + b) * x) / (a + 1))];
  let value = d;
  for (let m = 1; m <= 10_000; m++) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    let step = 1;
    for (const term of [even, odd]) {
      d = 1 / away(1 + term * d);
      c = away(1 + term / c);
      step = c * d;
      value *= step;
    }
    if (Math.abs(step - 1) < 1e-15) break;
  }
  return value;
}

/** Returns the divisor, or a tiny number in place of 0. */
function away(value: number): number {
  return Math.abs(value) < 1e-300 ? 1e-300 : value;
}

/**
 * Returns the logarithm of the gamma function.
 * **Source:** Stirling's series, NIST Digital Library of Mathematical Functions, 5.11.1.
 */
function logGamma(value: number): number {
  let [x, shift] = [value, 0];
  for (; x < 15; x++) shift += Math.log(x);
  const y = 1 / (x * x);
  const series = (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y / 1188)))) / x;
  return (x - 0.5) * Math.log(x) - x + Math.log(2 * Math.PI) / 2 + series - shift;
}

/** Returns the point at which a condition that holds at `low` stops holding. */
function bisect(holds: (x: number) => boolean, low: number, high: number): number {
  let [left, right] = [low, high];
  for (;;) {
    const middle = (left + right) / 2;
    if (middle === left || middle === right) return middle;
    if (holds(middle)) left = middle;
    else right = middle;
  }
}
