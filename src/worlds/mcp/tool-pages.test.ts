import { expect, test } from "vitest";
import { readPages, type ToolPage } from "./tool-pages.ts";

const faultOf = () => "refuses";

test("readPages() stops an endless list, and keeps the pages read so far", async () => {
  let count = 0;
  const readPage = async (): Promise<ToolPage> => {
    count += 1;
    return { tools: [{ name: `t${count}` }], nextCursor: `c${count}` };
  };
  const { tools, cut } = await readPages(readPage, faultOf);
  expect(tools).toHaveLength(200);
  expect(cut).toBe("its list has no end after 200 pages");
});

test("readPages() stops a list after three pages without new tools", async () => {
  let count = 0;
  const readPage = async (): Promise<ToolPage> => {
    count += 1;
    return { tools: [{ name: "same" }], nextCursor: `c${count}` };
  };
  const { tools, cut } = await readPages(readPage, faultOf);
  expect(tools).toEqual([{ name: "same" }]);
  expect(cut).toBe("3 pages one after the other bring nothing new");
  expect(count).toBe(4);
});

test("readPages() reads an empty page, and the pages after it", async () => {
  const pages: Record<string, ToolPage> = {
    first: { tools: [], nextCursor: "b" },
    b: { tools: [{ name: "one" }], nextCursor: undefined },
  };
  const read = async (cursor: string | undefined) => pages[cursor ?? "first"] as ToolPage;
  expect(await readPages(read, faultOf)).toEqual({ tools: [{ name: "one" }] });
});

test("readPages() reads a tool that nests too deeply to be written", async () => {
  let deep: object = {};
  for (let depth = 0; depth < 100_000; depth++) deep = { deep };
  const page = { tools: [deep, { name: "one" }], nextCursor: undefined };
  const { tools } = await readPages(async () => page, faultOf);
  expect(tools).toHaveLength(2);
});

test("readPages() hands on an outage, which may cost tools", async () => {
  const readPage = async (cursor: string | undefined): Promise<ToolPage> => {
    if (cursor !== undefined) throw new Error("gone");
    return { tools: [{ name: "one" }], nextCursor: "b" };
  };
  await expect(readPages(readPage, () => undefined)).rejects.toThrow("gone");
});

test("readPages() shortens the error of a page with many faults", async () => {
  const readPage = async (cursor: string | undefined): Promise<ToolPage> => {
    if (cursor !== undefined) throw new Error("fault ".repeat(100_000));
    return { tools: [{ name: "one" }], nextCursor: "b" };
  };
  const { cut } = await readPages(readPage, faultOf);
  expect(cut).toHaveLength('it refuses its own cursor "b" ()'.length + 1001);
});

test("readPages() reads all pages of a server that always sends the same cursor", async () => {
  let count = 0;
  const readPage = async (): Promise<ToolPage> => {
    count += 1;
    return { tools: [{ name: `t${Math.min(count, 4)}` }], nextCursor: "next" };
  };
  const tools = ["t1", "t2", "t3", "t4"].map((name) => ({ name }));
  expect(await readPages(readPage, faultOf)).toEqual({ tools });
});
