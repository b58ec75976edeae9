print("\x1b[2J\x1b]0;title\x07")
raise RuntimeError("\x1b[31mred\x1b[0m\n<script>\r|=cmd()\x07")
