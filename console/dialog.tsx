import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** A modal dialog, by the browser's own: it keeps the focus, closes by Escape, and gives it back. */
export function Dialog(props: {
  label: string;
  class?: string;
  onClose: () => void;
  children: ComponentChildren;
}) {
  const { label, onClose, children } = props;
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const element = dialog.current;
    element?.showModal();
    // The browser gives the focus back as it closes, once: it may have gone on by now.
    return () => element?.close();
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: by key it closes with Escape
    <dialog
      ref={dialog}
      class={props.class ?? ""}
      aria-label={label}
      onClose={onClose}
      // A click on what is behind it is one on the dialog itself.
      onClick={({ target }) => target === dialog.current && dialog.current?.close()}
    >
      <div class="dialog-body">{children}</div>
    </dialog>
  );
}
