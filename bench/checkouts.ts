import path from "node:path";
import { fileURLToPath } from "node:url";
import type { BenchFigure } from "./bench-figure.ts";

/** The root of this checkout. This file runs in dist/bench/. */
export const ourFolder = fileURLToPath(new URL("../../", import.meta.url));

/**
 * Returns the roots of the checkouts to measure: this one, and the older one to compare with.
 *
 * @param base - Folder of an older, built checkout, if any.
 */
export function checkoutsOf(base?: string): readonly string[] {
  return [ourFolder, ...(base === undefined ? [] : [path.resolve(base)])];
}

/** Returns the members of a figure that compare it with the older checkout's, if that was measured. */
export function against(value: number, baseline?: number): Pick<BenchFigure, "baseline" | "ratio"> {
  return baseline === undefined ? {} : { baseline, ratio: baseline / value };
}
