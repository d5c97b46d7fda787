"""ObtainDiamond on Craftax-Classic: the task, its expert and ten demonstrations."""
