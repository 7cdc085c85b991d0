import { stat } from "node:fs/promises";
import { packedName } from "../run/gzip/stored-files.ts";

/** True if a run's file exists, packed or not. */
export async function isFile(file: string): Promise<boolean> {
  for (const name of [file, packedName(file)]) {
    const found = await stat(name).catch(() => undefined);
    if (found?.isFile() === true) return true;
  }
  return false;
}
