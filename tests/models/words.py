"""A tokenizer with merges: one text has many spellings in ids, as in real ones."""

from __future__ import annotations

from tiny import CHATML


def merging_tokenizer(template: str = CHATML):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    lines = ['<tool_call>\n{"name": "bash", "arguments": {"command": "ls -la /app"}}\n</tool_call>'] * 8
    lines += ["system user assistant tool_response I will look at the files and run the tests now."] * 8
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=["<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    inner.train_from_iterator(lines, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, bos_token="<|im_start|>", eos_token="<|im_end|>", chat_template=template
    )
