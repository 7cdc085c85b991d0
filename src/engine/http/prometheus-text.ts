/** One sample of a page in Prometheus's text format. */
interface MetricSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const line = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?$/;
const label = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;
const escapes: Readonly<Record<string, string>> = { n: "\n" };

/**
 * Reads the samples of a metrics page. Skips lines that are not samples.
 *
 * **Source:** prometheus.io/docs/instrumenting/exposition_formats (text-based format).
 */
export function readMetrics(text: string): readonly MetricSample[] {
  return text.split("\n").flatMap((written) => {
    const [, name, labels = "", value] = line.exec(written.trim()) ?? [];
    const number = Number(value);
    if (name === undefined || Number.isNaN(number)) return [];
    return [{ name, labels: readLabels(labels), value: number }];
  });
}

function readLabels(text: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    [...text.matchAll(label)].map(([, name = "", value = ""]) => [
      name,
      value.replaceAll(/\\(.)/g, (_, escaped: string) => escapes[escaped] ?? escaped),
    ]),
  );
}

/** Returns the sum of a metric's samples, or `undefined` if it has none. */
export function sumOf(samples: readonly MetricSample[], ...names: readonly string[]) {
  const found = samples.filter(({ name }) => names.includes(name));
  return found.length === 0 ? undefined : found.reduce((sum, { value }) => sum + value, 0);
}

/** Returns the mean of a metric's samples, or `undefined` if it has none. */
export function meanOf(samples: readonly MetricSample[], ...names: readonly string[]) {
  const { length } = samples.filter(({ name }) => names.includes(name));
  const sum = sumOf(samples, ...names);
  return sum === undefined ? undefined : sum / length;
}
