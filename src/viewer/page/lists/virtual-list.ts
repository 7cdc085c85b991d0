/** The content of a list: rows of equal height, each with a key. */
export interface ListContent {
  readonly keys: readonly string[];
  readonly current: string | undefined;
  /** The height of each row, in pixels. */
  readonly rowHeight: number;
  /** Renders the row at an index. */
  readonly draw: (index: number) => HTMLElement;
}

const overscan = 6;

/**
 * A list of any length. Only the visible rows are in the page. Added rows do not move the visible
 * ones, and a reader at the end stays at the end.
 */
export class VirtualList extends HTMLElement {
  readonly #sizer = document.createElement("div");
  readonly #window = document.createElement("div");
  readonly #resized = new ResizeObserver(() => this.#draw());
  #content: ListContent = {
    keys: [],
    current: undefined,
    rowHeight: 34,
    draw: () => document.createElement("div"),
  };
  #anchor: { readonly key: string; readonly offset: number } | undefined;

  connectedCallback(): void {
    if (this.#sizer.parentElement === this) return;
    this.#sizer.className = "list-sizer";
    this.#window.className = "list-window";
    this.#sizer.append(this.#window);
    this.append(this.#sizer);
    this.tabIndex = 0;
    this.setAttribute("role", "rowgroup");
    this.addEventListener("scroll", () => {
      this.#rememberAnchor();
      this.#draw();
    });
    this.#resized.observe(this);
  }

  disconnectedCallback(): void {
    this.#resized.disconnect();
  }

  get content(): ListContent {
    return this.#content;
  }

  set content(content: ListContent) {
    const before = this.#content;
    const { rowHeight } = content;
    const isAtEnd =
      this.scrollTop > 0 && this.scrollTop + this.clientHeight >= this.scrollHeight - rowHeight / 2;
    const isAppended = before.keys.every((key, index) => content.keys[index] === key);
    this.#content = content;
    this.#sizer.style.height = `${content.keys.length * rowHeight}px`;
    if (isAtEnd && isAppended && content.keys.length > before.keys.length) {
      this.scrollTop = this.scrollHeight;
    } else if (!isAppended) this.#restoreAnchor();
    if (content.current !== before.current) this.#show(content.current);
    this.#draw();
  }

  #rememberAnchor(): void {
    const { rowHeight } = this.#content;
    const first = Math.floor(this.scrollTop / rowHeight);
    const key = this.#content.keys[first];
    this.#anchor =
      key === undefined || this.scrollTop === 0
        ? undefined
        : { key, offset: this.scrollTop - first * rowHeight };
  }

  #restoreAnchor(): void {
    if (this.#anchor === undefined) return;
    const index = this.#content.keys.indexOf(this.#anchor.key);
    if (index >= 0) this.scrollTop = index * this.#content.rowHeight + this.#anchor.offset;
  }

  #show(key: string | undefined): void {
    const index = key === undefined ? -1 : this.#content.keys.indexOf(key);
    if (index < 0 || this.clientHeight === 0) return;
    const { rowHeight } = this.#content;
    const top = index * rowHeight;
    if (top < this.scrollTop) this.scrollTop = top;
    const bottom = top + rowHeight - this.clientHeight;
    if (bottom > this.scrollTop) this.scrollTop = bottom;
  }

  #draw(): void {
    const { keys, draw, rowHeight } = this.#content;
    const first = Math.max(0, Math.floor(this.scrollTop / rowHeight) - overscan);
    const count = Math.ceil(this.clientHeight / rowHeight) + 2 * overscan;
    const rows: HTMLElement[] = [];
    for (let index = first; index < Math.min(keys.length, first + count); index++) {
      rows.push(draw(index));
    }
    this.#window.replaceChildren(...rows);
    this.#window.style.transform = `translateY(${first * rowHeight}px)`;
  }
}
