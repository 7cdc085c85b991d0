import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import path from "node:path";
import { UsageError } from "../errors.ts";
import { ofAddress, shownUrl } from "../secrets/find-secrets.ts";
import { hideEverywhere } from "../secrets/redactor.ts";

/** Environment variables of the hub's own library. */
export type HubVariables = Readonly<Record<string, string | undefined>>;

/** The locations of the cache and the hub. */
export interface HubPlace {
  /** The hub's cache: a folder `models--OWNER--NAME` for each model. */
  readonly cacheDir: string;
  /** The hub's address, such as `https://huggingface.co`. */
  readonly endpoint: string;
  /** True if nothing may be downloaded. */
  readonly isOffline: boolean;
}

/**
 * Reads the locations from the hub's own variables: `HF_HUB_CACHE`, `HF_HOME`, `XDG_CACHE_HOME`,
 * `HF_ENDPOINT`, `HF_HUB_OFFLINE`, `TRANSFORMERS_OFFLINE`.
 *
 * **Source:** huggingface/huggingface_hub, `src/huggingface_hub/constants.py`.
 */
export function readHubPlace(env: HubVariables): HubPlace {
  for (const name of addressVariables) hideEverywhere(ofAddress(env[name] ?? ""));
  return {
    cacheDir: fromHome(
      nonEmpty(env["HF_HUB_CACHE"]) ??
        nonEmpty(env["HUGGINGFACE_HUB_CACHE"]) ??
        path.join(homeOf(env), "hub"),
    ),
    endpoint: (nonEmpty(env["HF_ENDPOINT"]) ?? "https://huggingface.co").replace(/\/+$/, ""),
    isOffline: ["1", "on", "yes", "true"].includes(
      (nonEmpty(env["HF_HUB_OFFLINE"]) ?? env["TRANSFORMERS_OFFLINE"] ?? "").toLowerCase(),
    ),
  };
}

/**
 * Checks the hub's address.
 *
 * @throws UsageError if the hub's address is not an HTTP address. Call it before the hub is asked.
 */
export function requireAddress({ endpoint }: HubPlace): void {
  if (URL.canParse(endpoint) && /^https?:\/\//i.test(endpoint)) return;
  throw new UsageError(
    `Cannot use HF_ENDPOINT: it is ${shownUrl(endpoint)}, expected an address such as https://huggingface.co ` +
      "(characters of a password such as / and # are written %2F and %23)",
  );
}

/** Variables with addresses, which may contain passwords. */
const addressVariables = ["HF_ENDPOINT", "HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"];

/**
 * Reads the user's token from `HF_TOKEN`, or from the file that the hub's `login` command writes.
 */
export async function readHubToken(env: HubVariables): Promise<string | undefined> {
  const given = nonEmpty(env["HF_TOKEN"]) ?? nonEmpty(env["HUGGING_FACE_HUB_TOKEN"]);
  if (given !== undefined) return hidden(given.trim());
  const file = nonEmpty(env["HF_TOKEN_PATH"]) ?? path.join(homeOf(env), "token");
  const text = await readFile(fromHome(file), "utf8").catch(() => "");
  const token = nonEmpty(text.trim());
  return token === undefined ? undefined : hidden(token);
}

function hidden(token: string): string {
  hideEverywhere({ secrets: [token] });
  return token;
}

function homeOf(env: HubVariables): string {
  const cache = nonEmpty(env["XDG_CACHE_HOME"]) ?? path.join(homedir(), ".cache");
  return nonEmpty(env["HF_HOME"]) ?? path.join(cache, "huggingface");
}

/** Expands a leading `~` as the hub's library does, because no shell has expanded it. */
function fromHome(file: string): string {
  return file === "~" || file.startsWith("~/") ? path.join(homedir(), file.slice(1)) : file;
}

function nonEmpty(value: string | undefined): string | undefined {
  return value === "" ? undefined : value;
}
