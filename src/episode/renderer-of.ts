import { UsageError } from "../errors.ts";
import type { Renderer } from "../renderer/renderer.ts";
import type { EpisodeSetup } from "./episode-setup.ts";

/**
 * Returns the renderer of a setup with an engine that returns ids.
 *
 * @throws UsageError if it is absent.
 */
export function rendererOf({
  engine,
  renderer,
}: Pick<EpisodeSetup, "renderer"> & Partial<Pick<EpisodeSetup, "engine">>): Renderer {
  if (renderer !== undefined) return renderer;
  const kind = engine === undefined ? "the engine" : `the engine ${engine.kind}`;
  throw new UsageError(
    `Cannot play without a renderer: ${kind} returns token ids, expected the renderer of its model`,
  );
}
