import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** A modal `<dialog>`. The browser traps the focus, closes it on Escape and restores the focus. */
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
    // Closes on unmount. If it is closed already, this does nothing and keeps the current focus.
    return () => element?.close();
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: by key it closes with Escape
    <dialog
      ref={dialog}
      class={props.class ?? ""}
      aria-label={label}
      onClose={onClose}
      // A click on the backdrop has the dialog itself as its target.
      onClick={({ target }) => target === dialog.current && dialog.current?.close()}
    >
      <div class="dialog-body">{children}</div>
    </dialog>
  );
}
